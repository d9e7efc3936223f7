#!/bin/bash
# R9: ten variants of one experiment, three at a time.
set -euo pipefail

job=$(sbatch --parsable -A research --array=0-9%3 --gres=gpu:1 -o 'seed-%a.txt' \
  --wrap 'echo "seed $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT in array $SLURM_ARRAY_JOB_ID"')
while squeue -h -j "$job" | grep -q .; do :; done

cat seed-*.txt
test "$(cat seed-*.txt | sort -u | wc -l)" = 10
test "$(sacct -n -X -j "$job" -o State | grep -c COMPLETED)" = 10
