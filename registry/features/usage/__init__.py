"""Which versions are still fetched, by whom and when last."""
