#!/bin/bash
# R222: three models on one partition, with logs and accounting.
set -euo pipefail

for model in resnet bert gpt; do
  sbatch -A research -p TeamA_Part -J "$model" --gres=gpu:1 -o "$model.log" --wrap "echo training $model"
done
while squeue -h -n resnet,bert,gpt | grep -q .; do :; done

cat resnet.log bert.log gpt.log
sacct -X -o JobName%10,Partition%12,AllocTRES%40,State --name=resnet,bert,gpt | tee models.txt
test "$(grep -c COMPLETED models.txt)" -ge 3
