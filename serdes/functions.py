"""The types of functions from and to values, which are of any Python type that a schema may have."""

from collections.abc import Callable
from typing import Any

__all__ = ["Convert", "Decode", "Encode"]

Decode = Callable[[bytes], Any]
"""Returns the value in a payload."""
Encode = Callable[[Any], bytes]
"""Returns the payload of a value."""
Convert = Callable[[Any], Any]
"""Returns a value in another form; the function decides which types of values it takes."""
