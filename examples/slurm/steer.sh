#!/bin/bash
# R18 R19 R20: suspend, resume, and another time limit for a job that runs or waits.
set -euo pipefail

job=$(sbatch --parsable -A research -t 10 --wrap 'exec sleep 1000')
until squeue -h -j "$job" -o %T | grep -x RUNNING; do :; done

scontrol suspend "$job"
until squeue -h -j "$job" -o %T | grep -x SUSPENDED; do :; done
scontrol resume "$job"
until squeue -h -j "$job" -o %T | grep -x RUNNING; do :; done

scontrol update jobid="$job" TimeLimit=01:00:00
scontrol show job "$job" | grep TimeLimit=01:00:00

waits=$(sbatch --parsable -A research --hold --wrap true)
scontrol update jobid="$waits" TimeLimit=00:30:00
squeue -h -j "$waits" -o "%T %l %r" | grep "PENDING 30:00 JobHeld"
scancel "$job" "$waits"
