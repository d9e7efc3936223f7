#!/bin/bash
# R21 R22 R23 R24 R25 R26 R216 R225: two teams, each with its partition, its limits and its nodes.
set -euo pipefail

sinfo -o "%P %N %l %G" | tee partitions.txt
grep -q "TeamA_Part.* node\[1-2\] 1-00:00:00 gpu:a100:4" partitions.txt
grep -q "TeamB_Part.* node3 infinite gpu:a100:4" partitions.txt

# The smoke test of either team, with its account.
srun -A research --partition=TeamA_Part --gres=gpu:1 hostname
srun -A product --partition=TeamB_Part --gres=gpu:1 hostname
test "$(srun -A product -p TeamB_Part bash -c 'echo $SLURMD_NODENAME')" = node3

# Neither gets into the other's.
if sbatch -A research --partition=TeamB_Part --wrap true 2> refused.txt; then exit 1; fi
cat refused.txt
# A limit is a limit.
if sbatch -A research -p TeamA_Part -t 2-0 --wrap true; then exit 1; fi

# A MIG slice is asked for as a type of GPU.
srun -A research --gres=gpu:1g.5gb:1 bash -c 'echo "slice $CUDA_VISIBLE_DEVICES"' | grep "slice MIG-"

# Lists of users, and the requirement's own spelling of partitions and GPUs, are imported as well.
cat > lists.conf <<'CONF'
NodeName=node[01-04] CPUs=8 RealMemory=64000 Gres=gpu:MIG-GPU-0:1
PartitionName=gpu-research Nodes=node[01-04] AllowUsers=alice,bob Priority=10 PreemptMode=REQUEUE TimeLimit=02:00:00
CONF
echo 'Name=gpu Type=MIG-GPU-0 UUID=GPU-abc123 Count=1' > lists-gres.conf
muster import lists.conf lists-gres.conf 2> notes.txt | tee lists.yaml
grep -q "gpu-research: {cluster: local, max_time: 2h, users: \[alice, bob\]}" lists.yaml
