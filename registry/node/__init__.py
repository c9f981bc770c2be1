"""The processes of a node: settings, workers, health, log lines, and what else they share."""
