#!/usr/bin/env bash
# Installs what the conformance run needs beside podman, where that is missing: for root, on Debian and its kin.
set -euo pipefail
cd "$(dirname "$0")"
bash ../containers/install.sh

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
# The suite looks for variables that busybox's shell drops.
command -v bash-static >/dev/null || missing+=(bash-static)

[ ${#missing[@]} -eq 0 ] && exit 0
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install --yes --quiet --no-install-recommends "${missing[@]}"; }
install || { apt-get update --quiet && install; }
