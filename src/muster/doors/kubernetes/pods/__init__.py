"""What a pod, a node and a quota are to Muster, as functions of plain JSON and of our values."""
