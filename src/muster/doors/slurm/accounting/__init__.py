"""What sacct shows of attempts and steps, and who belongs to which account."""
