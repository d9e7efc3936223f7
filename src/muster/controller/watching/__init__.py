"""What runs how: samples of all clusters, joined with the jobs that hold what was measured."""
