"""What is wrong with a pod, in the words of Kubernetes."""
