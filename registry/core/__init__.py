"""What a registry decides and remembers: State, look-ups in it, decisions, rights, and the single writer."""
