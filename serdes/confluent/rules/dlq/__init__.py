"""The action that sends dead letters."""
