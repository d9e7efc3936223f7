#!/usr/bin/env bash
# Builds helm from Go modules, unless it was built before, and prints where it is. Called by `make clients`.
set -euo pipefail
cd "$(dirname "$0")"
. ../../kubernetes_real/go.sh

FOLDER=$KEPT/helm-$(sha256sum <go.sum | cut -c1-12)
VERSION=$(sed -n 's|^require helm.sh/helm/v3 ||p' go.mod)

if [ ! -x "$FOLDER/helm" ]; then
    mkdir -p "$FOLDER"
    # Beside its place first: what was broken off leaves nothing that looks complete.
    "$(a_go)" build -mod=readonly -trimpath -o "$FOLDER/.helm" \
        -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=$VERSION" helm.sh/helm/v3/cmd/helm
    mv "$FOLDER/.helm" "$FOLDER/helm"
fi
echo "$FOLDER/helm"
