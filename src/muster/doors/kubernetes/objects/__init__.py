"""What the Kubernetes API does with any object, as functions of plain JSON: no clock, no wires."""
