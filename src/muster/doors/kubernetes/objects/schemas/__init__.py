"""Which fields the types of Kubernetes have: facts, distilled from its own descriptions."""
