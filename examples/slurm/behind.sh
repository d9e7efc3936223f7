#!/bin/bash
# R31 R33 R36 R38: the controller's log, who may do what, one controller, the same answer twice.
set -euo pipefail

scontrol ping | grep "is UP"
job=$(sbatch --parsable -A research --wrap 'exec sleep 1000')
until squeue -h -j "$job" -o %T | grep -qx RUNNING; do :; done
muster events --job "$job" | grep -i "submitted\|placed\|start"

# Nobody is who they say they are: the system tells, and another user's job is left alone.
if test "$(id -u)" = 0 && runuser -u nobody -- "$(command -v scancel)" --version > version.txt; then
  runuser -u nobody -- "$(command -v scancel)" "$job" 2> denied.txt || true
  grep "Access/permission denied" denied.txt
fi

# Decisions hang on nothing but what there is: asked twice, the answer is the same place.
ask() { sbatch --test-only -A research --gres=gpu:1 --wrap true 2>&1 | sed -E 's/[Jj]ob [0-9]+//; s/at [^ ]+ //'; }
test "$(ask)" = "$(ask)"
scancel "$job"
