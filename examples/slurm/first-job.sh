#!/bin/bash
# R1 R2 R3 R4 R5 R6 R7 R8 R10 R11 R12 R32: hand in a script, watch it, read what it wrote, end it.
set -euo pipefail
here=$(dirname "$0")

sbatch "$here/train.sbatch" | tee submitted.txt
job=$(grep -o '[0-9]*$' submitted.txt)
while squeue -h -j "$job" | grep -q .; do :; done
cat "resnet50-$job.txt"
grep -q "with GPUs ., *.\|with GPUs .,. and 4 CPUs" "resnet50-$job.txt"

# The command line wins over the script.
long=$(SECONDS_TO_TRAIN=1000 sbatch --parsable --partition=TeamA_Part --job-name=long "$here/train.sbatch")
until squeue -h -j "$long" -o "%T %P %N" | grep "RUNNING TeamA_Part node"; do :; done
squeue
sinfo
scontrol show job "$long" | grep -E "JobState=RUNNING|TresPerNode=gres:gpu:2|TimeLimit=04:00:00"

scancel "$long"
while squeue -h -j "$long" | grep -q .; do :; done
sacct -n -X -j "$job,$long" -o JobID,JobName,State | tee states.txt
grep -q "COMPLETED" states.txt
grep -q "CANCELLED" states.txt

# A job that fails is told as such, with its exit code.
bad=$(sbatch --parsable -A research --wrap 'exit 3')
while squeue -h -j "$bad" | grep -q .; do :; done
sacct -n -X -P -j "$bad" -o State,ExitCode | grep -x "FAILED|3:0"
