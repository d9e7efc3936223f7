"""Why a job is slow: one cause for each minute of each device (pure)."""
