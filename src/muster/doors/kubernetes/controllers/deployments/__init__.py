"""Deployments: from one pod template to the next, a ReplicaSet for each, within given bounds."""
