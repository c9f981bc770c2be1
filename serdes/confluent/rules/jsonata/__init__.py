"""The executor of JSONata."""
