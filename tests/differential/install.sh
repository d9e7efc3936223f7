#!/usr/bin/env bash
# Installs a real Slurm to compare with, where that is missing: for root, on Debian and its kin.
# Its services are not started. Elsewhere it changes nothing, and the tests say why they skip.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The module needs nothing but the standard library, so that any Python will do.
exec python3 -m bench.slurm.installing
