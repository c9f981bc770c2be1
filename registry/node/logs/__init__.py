"""The log lines of the service: their format, the request that they belong to, and the folding of equal lines."""
