"""A package, so that the fixtures of scope `package` end with the last test in this folder."""
