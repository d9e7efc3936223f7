"""The loop: observe, plan, verify, commit, act."""
