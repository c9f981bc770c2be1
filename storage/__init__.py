"""The records of the log, the State that is their fold, and the logs that hold them."""
