"""Mail about jobs."""
