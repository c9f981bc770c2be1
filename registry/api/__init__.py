"""Routes: each parses a request, calls one function and returns its answer."""
