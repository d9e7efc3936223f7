#!/usr/bin/env bash
# Makes the environments of the client tests in .tools, one for each locked list; called by `make clients`.
# What cannot be had is left out, and the tests say why they were skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/clients/environments.sh

has_torch() { /usr/bin/python3 -c 'import torch' 2>/dev/null; }

torch() {
    has_torch && return
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return
    export DEBIAN_FRONTEND=noninteractive
    local wanted=(apt-get install --yes --quiet --no-install-recommends python3-torch)
    # The lists of packages may be absent or old.
    "${wanted[@]}" || { apt-get update --quiet && "${wanted[@]}"; }
    has_torch
}

environment clients clients "$PYTHON"
environment clients jobstats "$PYTHON"
if torch; then
    environment clients lightning /usr/bin/python3 --system-site-packages
else
    echo "the test of Lightning will be skipped: no PyTorch for /usr/bin/python3" >&2
fi
