"""What a page for people is made of, for the features that have one."""
