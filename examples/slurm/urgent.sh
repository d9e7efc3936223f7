#!/bin/bash
# R27 R28: QOS with priorities and limits; production stops a student's job, which runs again later.
set -euo pipefail

squeue_state() { squeue -h -j "$1" -o %T; }

student=$(sbatch --parsable -A product -p TeamB_Part --qos=student --gres=gpu:2 --requeue --wrap 'sleep 5')
second=$(sbatch --parsable -A product -p TeamB_Part --qos=student --gres=gpu:1 --wrap true)
until test "$(squeue_state "$student")" = RUNNING; do :; done
# A student has two GPUs at most at once.
squeue -h -j "$second" -o "%T %r"
test "$(squeue_state "$second")" = PENDING

urgent=$(sbatch --parsable -A product -p TeamB_Part --qos=production --gres=gpu:4 --wrap 'sleep 1')
until squeue -h -t all -j "$urgent" -o %T | grep -qx "RUNNING\|COMPLETED"; do :; done
while squeue -h -j "$student,$urgent,$second" | grep -q .; do :; done
sacct -n -D -X -P -j "$student" -o State | tee history.txt
grep -qx PREEMPTED history.txt
grep -qx COMPLETED history.txt
