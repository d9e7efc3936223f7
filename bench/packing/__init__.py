"""The openb benchmark: its protocol, ports of published policies, and our planner beside them."""
