"""The log in a SQL database, and its compaction."""
