"""Commands that only ask what would happen: `whatif`, `simulate`, `compare`."""
