"""The worker processes of one node: the parent that starts and replaces them, and what they share."""
