"""Jobs, nodes and steps as rows of squeue, sinfo and the like."""
