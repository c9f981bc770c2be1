"""Access control: who sends a request, what they may do, and a record of what they did."""
