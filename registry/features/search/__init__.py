"""Search over the names, fields, documentation, tags and metadata of the latest versions."""
