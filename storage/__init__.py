"""What was written: records, the State they add up to, and the logs that hold them."""
