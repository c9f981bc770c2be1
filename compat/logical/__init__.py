"""What a schema means for a table: native schema → logical type → validity and comparison (policy LOGICAL)."""
