"""orjson where it is installed: a client installs it with some formats only.

Without it nothing is read as plain JSON, so nothing is kept by its bytes, and the standard library reads all texts.
"""

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

__all__ = ["orjson"]
