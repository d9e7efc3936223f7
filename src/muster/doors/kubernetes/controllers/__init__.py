"""Kubernetes' controllers as pure functions: objects in, changes out. No clock but `now`."""
