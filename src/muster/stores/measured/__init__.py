"""What was measured and judged: kept apart from the journal."""
