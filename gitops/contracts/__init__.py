"""Data contracts in the Open Data Contract Standard (ODCS) 3.1: from a subject's version, and into files."""
