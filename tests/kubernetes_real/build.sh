#!/usr/bin/env bash
# Builds a real Kubernetes 1.36.3 to compare with, from Go modules, and prints the folder of its programs.
# Called by `make kubernetes`. What was built before is used again: the folder has the hash of both go.sum in its name.
# `build.sh where` only says where that is.
# `build.sh conformance`, called by `make conformance`, builds its conformance suite (e2e.test, agnhost) and nothing else.
set -euo pipefail
cd "$(dirname "$0")"

VERSION=1.36.3
. ./go.sh
FOLDER=$KEPT/kubernetes-$VERSION-$(cat kubernetes/go.sum etcd/go.sum | sha256sum | cut -c1-12)
STAMP=k8s.io/component-base/version
FLAGS="-s -w -X $STAMP.gitVersion=v$VERSION -X $STAMP.gitMajor=1 -X $STAMP.gitMinor=36"

build() { # module package... : the programs are named after their packages
    local module=$1 package name
    shift
    for package in "$@"; do
        name=${package##*/}
        [ "$package" != go.etcd.io/etcd/server/v3 ] || name=etcd
        [ ! -x "$FOLDER/$name" ] || continue
        # Beside its place first: what was broken off leaves nothing that looks complete.
        (cd "$module" && "$GO" build -mod=readonly -trimpath -ldflags "$FLAGS" -o "$FOLDER/.$name" "$package")
        mv "$FOLDER/.$name" "$FOLDER/$name"
    done
}

build_suite() {
    local tests=k8s.io/kubernetes/test/e2e
    # It goes into an image that has no libraries. Without cgo, all that the suite shares with it would be compiled twice.
    FLAGS="$FLAGS -linkmode external -extldflags -static" build kubernetes k8s.io/kubernetes/test/images/agnhost
    [ ! -x "$FOLDER/e2e.test" ] || return 0
    (cd kubernetes && "$GO" test -c -vet=off -mod=readonly -trimpath -ldflags "$FLAGS" -o "$FOLDER/.e2e.test" "$tests")
    mv "$FOLDER/.e2e.test" "$FOLDER/e2e.test"
}

if [ "${1:-}" = where ]; then
    echo "$FOLDER"
    exit
fi
GO=$(a_go)
mkdir -p "$FOLDER"
exec 9>"$FOLDER/.lock"
flock 9
if [ "${1:-}" = conformance ]; then
    build_suite
else
    build kubernetes k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet}
    build etcd go.etcd.io/etcd/server/v3
    # Ours, and soon built: it may have changed since.
    rm -f "$FOLDER/pretendgpus"
    build kubernetes ./pretendgpus
fi
echo "$FOLDER"
