"""Commands about jobs that exist: lists, one job, its log and events, and what steers it."""
