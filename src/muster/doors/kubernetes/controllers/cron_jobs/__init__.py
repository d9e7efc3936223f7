"""CronJobs: a Job for each time that a schedule names."""
