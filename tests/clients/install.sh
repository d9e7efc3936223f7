#!/usr/bin/env bash
# Makes the environments of the client tests in .tools, one for each locked list; called by `make clients`.
# What cannot be had is left out, and the tests say why they were skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${UV:?is named by make}" "${PYTHON:?is named by make}"

environment() { # list python [option...]
    local list="tests/clients/requirements-$1.txt" python="$2"
    # Named after what is in it, so that another list makes another environment.
    local folder
    folder=".tools/clients-$1-$(sha256sum <"$list" | cut -c1-12)"
    [ -e "$folder/complete" ] && return
    rm -rf ".tools/clients-$1"-*
    "$UV" venv --quiet --python "$python" "${@:3}" "$folder"
    # Compiled once here, and not by each program that a test starts.
    "$UV" pip sync --quiet --compile-bytecode --python "$folder/bin/python" "$list"
    touch "$folder/complete"
}

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

environment clients "$PYTHON"
if torch; then
    environment lightning /usr/bin/python3 --system-site-packages
else
    echo "the test of Lightning will be skipped: no PyTorch for /usr/bin/python3" >&2
fi
