"""Classes as schemas: a dataclass, pydantic model, attrs class, msgspec struct or TypedDict instead of a schema text.

    @dataclass
    class Flight:
        carrier: str
        delay: int = 0

    serialize = AvroSerializer(client, Flight)
    flight = AvroDeserializer(client, Flight)(frame)

`schema_of` makes the schema; the hints may be annotated with the markers of this package.
"""

from strata.serdes.classes.binding import Bound, bound, schema_of
from strata.serdes.classes.markers import Absent, Digits, Field, Fixed, Float32, Int32, Local, Millis, Wire, named

__all__ = [
    "Absent",
    "Bound",
    "Digits",
    "Field",
    "Fixed",
    "Float32",
    "Int32",
    "Local",
    "Millis",
    "Wire",
    "bound",
    "named",
    "schema_of",
]
