"""Exporters: they copy subjects of this registry to others, over REST."""
