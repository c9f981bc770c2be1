"""Data contracts: the rules that a schema carries, run over records. Needs the extra `rules`."""
