"""The containers of a pod, run on this machine by the supervisor of their attempt."""
