"""Commands that show the cluster: nodes, queues, classes, and all of it live."""
