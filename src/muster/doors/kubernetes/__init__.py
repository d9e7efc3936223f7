"""The Kubernetes door: kubectl and other clients of Kubernetes drive Muster."""
