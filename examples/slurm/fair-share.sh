#!/bin/bash
# R30 R37 R232: shares of 40 and 60, what was used fades with a half-life of 7 days.
set -euo pipefail

scontrol show config | grep -E "PriorityDecayHalfLife *= 7-00:00:00"
sshare -a -o Account,RawShares,NormShares,EffectvUsage,FairShare
sshare -n -P -A research,product -o Account,NormShares | tee shares.txt
grep -q "research|0.400000" shares.txt
grep -q "product|0.600000" shares.txt

# Whoever used less goes first: the priorities say why.
hold=$(sbatch --parsable -A research -w "node[1-2]" -N 2 --exclusive --wrap 'exec sleep 1000')
a=$(sbatch --parsable -A research -w node1 --exclusive --wrap true)
sprio -j "$a"
scancel "$hold" "$a"

# Two days of both teams asking for more than there is, rehearsed in a second: 40 and 60 of 100.
muster import "$(dirname "$0")"/site/{slurm.conf,accounts.cfg,qos.txt} 2> notes.txt |
  grep -v "TeamA_Part\|TeamB_Part\|^pools" > rules.yaml
{
  echo submit_s,duration_s,gpus,user,queue
  for second in $(seq 1 500); do
    echo "$second,3600,1,ann,research"
    echo "$second,3600,1,bob,product"
  done
} > both.csv
muster simulate both.csv --site rules.yaml --nodes 1 --gpus 8xA100-40GB --until 2d | tee rehearsed.txt
grep -Eq "research +40 .* 1\.00 " rehearsed.txt
grep -Eq "product +60 .* 1\.00 " rehearsed.txt
