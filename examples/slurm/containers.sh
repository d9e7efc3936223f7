#!/bin/bash
# R34: a job in a container image, as pyxis spells it. IMAGE is one that your container tool has.
set -euo pipefail

job=$(sbatch --parsable -A research --container-image="${IMAGE:?name an image}" -o inside.txt --wrap 'id; pwd')
while squeue -h -j "$job" | grep -q .; do :; done
cat inside.txt
sacct -n -X -j "$job" -o State | grep COMPLETED
