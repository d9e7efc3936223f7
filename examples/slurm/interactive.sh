#!/bin/bash
# R15 R16 R17: a command, a shell and the steps of a job.
set -euo pipefail

srun -A research --partition=TeamA_Part --gres=gpu:1 bash -c 'echo "one GPU: $CUDA_VISIBLE_DEVICES"'

# A shell with a terminal; here its input comes from a script.
printf 'tty\necho "in job $SLURM_JOB_ID"\nexit\n' |
  script -qec "srun -A research --gres=gpu:1 --pty bash --norc" /dev/null | tee shell.txt
grep -q "/dev/pts/" shell.txt
grep -q "in job [0-9]" shell.txt

# Steps: four tasks on two nodes, each with its rank.
job=$(sbatch --parsable -A research -N 2 --ntasks-per-node=2 -o steps.txt \
  --wrap 'srun -l bash -c "echo rank \$SLURM_PROCID on \$SLURMD_NODENAME"; srun -n 1 echo alone')
while squeue -h -j "$job" | grep -q .; do :; done
sort steps.txt
grep -q "^3: rank 3 on node2" steps.txt
sacct -n -j "$job" -o JobID | grep -q "$job.1"
