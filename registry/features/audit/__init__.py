"""The audit: a line for each change, each refusal and, if wanted, each read."""
