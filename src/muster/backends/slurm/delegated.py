"""What jobs find around them where Slurm chose the nodes: lines of shell. Pure.

Which nodes those are, and which tasks share one, is known only where they run.
"""

CHOSEN_THERE = frozenset(
    {
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MPI_LOCALNRANKS",
        "MPI_LOCALRANKID",
        "MUSTER_LOCAL_RANK",
        "MUSTER_NODE",
        "MUSTER_NODELIST",
        "MUSTER_NODES",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    }
)
"""What we would say of our own placement, which was not asked for."""

IN_SCRIPT = "export MASTER_ADDR=$SLURMD_NODENAME MUSTER_NODE=$SLURMD_NODENAME\n"
"""A script runs on the first node."""

ONE_TASK = "export LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MUSTER_LOCAL_RANK=0\n"

IN_TASK = """\
left=$SLURM_NODEID
for each in $(echo "$SLURM_STEP_TASKS_PER_NODE" | tr ',' ' '); do
  size=${each%%(*}
  case $each in *x*) times=${each#*x}; times=${times%)};; *) times=1;; esac
  [ "$left" -lt "$times" ] && break
  left=$((left - times))
done
export MUSTER_NODE=$SLURMD_NODENAME MUSTER_LOCAL_RANK=$SLURM_LOCALID
export LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=$size
export OMPI_COMM_WORLD_LOCAL_RANK=$SLURM_LOCALID OMPI_COMM_WORLD_LOCAL_SIZE=$size
export MPI_LOCALRANKID=$SLURM_LOCALID MPI_LOCALNRANKS=$size"""
"""`2(x3),1` tasks on the nodes of a step: three nodes with two, and one with one."""
