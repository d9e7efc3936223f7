"""What is free where: the nodes, what they have left, and the best place in them for a task."""
