"""How we decide: pure functions from what is to what to do."""
