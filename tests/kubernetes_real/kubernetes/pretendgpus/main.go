// pretendgpus is a device plugin: it tells a kubelet of GPUs that are not there.
//
//	pretendgpus FOLDER COUNT
//
// FOLDER is the kubelet's folder of device plugins. A container sees the names of its GPUs in NVIDIA_VISIBLE_DEVICES.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const resource, socket = "nvidia.com/gpu", "muster-pretend.sock"

type plugin struct {
	api.UnimplementedDevicePluginServer
	count int
}

func (plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	devices := make([]*api.Device, p.count)
	for index := range devices {
		devices[index] = &api.Device{ID: fmt.Sprintf("GPU-%d", index), Health: api.Healthy}
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, each := range asked.ContainerRequests {
		seen := map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(each.DevicesIds, ",")}
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{Envs: seen})
	}
	return answer, nil
}

func main() {
	folder := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	for {
		serve(folder, plugin{count: count})
		time.Sleep(time.Second)
	}
}

// serve until the kubelet forgets us: one that begins again empties the folder.
func serve(folder string, p plugin) {
	path := filepath.Join(folder, socket)
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Print(err)
		return
	}
	server := grpc.NewServer()
	defer server.Stop()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	if err := register(folder); err != nil {
		log.Print(err)
		return
	}
	for {
		if _, err := os.Stat(path); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func register(folder string) error {
	where := "unix://" + filepath.Join(folder, "kubelet.sock")
	connection, err := grpc.NewClient(where, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	asked := &api.RegisterRequest{Version: api.Version, Endpoint: socket, ResourceName: resource}
	_, err = api.NewRegistrationClient(connection).Register(ctx, asked)
	return err
}
