"""Jobs: pods that run to their end, so many at a time, until enough have succeeded."""
