"""What the service counts about itself: the table of all metrics, and the numbers of one process."""
