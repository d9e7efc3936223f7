"""The configuration file: `muster apply -f cluster.yaml` to one `Site`, and back."""
