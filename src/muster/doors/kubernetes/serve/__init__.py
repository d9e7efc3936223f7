"""The Kubernetes API on the wire: paths, bodies, lists, watches, and who may use them."""
