"""A Kubernetes cluster as a backend: Muster places pods, kubelets run them."""
