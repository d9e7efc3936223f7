"""Pods that users make with kubectl on clusters of their own, as jobs like all others."""
