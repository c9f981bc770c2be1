"""The reader schema of a decode: cut down to the columns asked for, and written out again for the executors."""

from serdes.avro_project import project, write

__all__ = ["project", "write"]
