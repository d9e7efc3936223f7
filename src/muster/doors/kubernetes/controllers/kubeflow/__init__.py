"""Kubeflow's training jobs: replicas of several roles that start together."""
