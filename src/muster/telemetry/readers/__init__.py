"""What other people's servers measured, read as samples."""
