#!/usr/bin/env bash
# Builds what the tests have Muster observed by, from Go modules, and prints the folder of the programs:
# prometheus and promtool 3.15, alertmanager and amtool 0.31.1, statsd_exporter 0.31. Called by `make observers`.
# What was built before is used again: the folder has the hash of all go.sum in its name.
# `build.sh where` only says where that is.
set -euo pipefail
cd "$(dirname "$0")"

. ../kubernetes_real/go.sh
FOLDER=$KEPT/observers-$(cat prometheus/go.sum alertmanager/go.sum statsd_exporter/go.sum | sha256sum | cut -c1-12)

build() { # module package... : the programs are named after their packages
    local module=$1 package name
    shift
    for package in "$@"; do
        name=${package##*/}
        [ ! -x "$FOLDER/$name" ] || continue
        # Beside its place first: what was broken off leaves nothing that looks complete.
        # Without service discovery of clouds, most of what Prometheus depends on is not needed.
        (cd "$module" && CGO_ENABLED=0 "$GO" build -mod=readonly -trimpath -tags remove_all_sd,netgo \
            -ldflags "-s -w" -o "$FOLDER/.$name" "$package")
        mv "$FOLDER/.$name" "$FOLDER/$name"
    done
}

if [ "${1:-}" = where ]; then
    echo "$FOLDER"
    exit
fi
GO=$(a_go)
mkdir -p "$FOLDER"
exec 9>"$FOLDER/.lock"
flock 9
build prometheus github.com/prometheus/prometheus/cmd/{promtool,prometheus}
build alertmanager github.com/prometheus/alertmanager/cmd/{alertmanager,amtool}
build statsd_exporter github.com/prometheus/statsd_exporter
echo "$FOLDER"
