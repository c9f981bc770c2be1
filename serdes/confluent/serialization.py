"""The names of `confluent_kafka.serialization` that serializers use: confluent-kafka's own where it is installed.

Programs catch `SerializationError` and make a `SerializationContext` by the names of confluent-kafka, so these must be
the same classes. Without it, classes of the same shape take their place.
"""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

__all__ = ["MessageField", "SerializationContext", "SerializationError"]

if TYPE_CHECKING:

    class SerializationError(Exception):
        """An error of a serializer or deserializer."""

    class MessageField(str, Enum):  # noqa: UP042 - its text is that of confluent-kafka
        """The part of a record that is serialized."""

        NONE = "none"
        KEY = "key"
        VALUE = "value"

    class SerializationContext:
        """The topic, field and headers of a record."""

        topic: str
        field: MessageField
        headers: Any

        def __init__(self, topic: str, field: MessageField, headers: object = None) -> None: ...

    Strategy = Callable[[SerializationContext | None, str | None], str | None]
else:
    try:
        from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
    except ImportError:

        class SerializationError(Exception):
            """An error of a serializer or deserializer."""

        class MessageField(str, Enum):  # noqa: UP042 - its text is that of confluent-kafka
            """The part of a record that is serialized."""

            NONE = "none"
            KEY = "key"
            VALUE = "value"

            def __str__(self) -> str:
                return str(self.value)

        class SerializationContext:
            """The topic, field and headers of a record."""

            def __init__(self, topic, field, headers=None):
                self.topic, self.field, self.headers = topic, field, headers
