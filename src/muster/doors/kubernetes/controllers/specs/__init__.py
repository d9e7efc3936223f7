"""What workloads have where their manifests are silent, and what may not be in them."""
