#!/usr/bin/env bash
# Makes the environments of the tests of Kubernetes' clients in .tools, and builds helm; called by `make clients`.
# What cannot be had is left out, and the tests say why they were skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/clients/environments.sh

environment kubernetes_clients libraries "$PYTHON"
environment kubernetes_clients airflow "$PYTHON"
bash tests/kubernetes_clients/helm/build.sh
