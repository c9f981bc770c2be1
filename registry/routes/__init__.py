"""Routes: parse, call one function, return."""
