#!/bin/bash
# R13 R14 R29 R35: who used what, by job, by user and by account.
set -euo pipefail

job=$(sbatch --parsable -A product -p TeamB_Part --gres=gpu:a100:1 -c 2 --mem=1G --wrap 'echo done')
while squeue -h -j "$job" | grep -q .; do :; done

sacct
sacct -j "$job"
sacct -u "$(id -un)" --format=JobID,Elapsed,ReqGRES,AllocGRES,MaxRSS
sacct -n -X -P -j "$job" -o AllocTRES | tee tres.txt
grep -q "cpu=2.*gres/gpu=1.*mem=1G" tres.txt
sacct -n -X -A product -o JobID | grep -q "$job"
