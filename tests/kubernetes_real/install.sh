#!/usr/bin/env bash
# Installs what nodes of a real Kubernetes need, where that is missing: for root, on Debian and its kin.
# Elsewhere it changes nothing, and the tests say why they were skipped.
set -euo pipefail

missing=()
command -v containerd >/dev/null || missing+=(containerd)
command -v runc >/dev/null || missing+=(runc)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
[ -x /usr/lib/cni/ptp ] || missing+=(containernetworking-plugins)
# A busybox that needs no libraries is all that the image of jobs holds.
[ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 || missing+=(busybox-static)

[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "the tests with a real Kubernetes will be skipped: missing ${missing[*]}" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install --yes --quiet --no-install-recommends "${missing[@]}"; }
# The lists of packages may be absent or old.
install || { apt-get update --quiet && install; }
