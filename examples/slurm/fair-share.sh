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
