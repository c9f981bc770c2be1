"""The metrics as Prometheus reads them: gathered from all workers of the node, and written out."""
