"""Serializers, deserializers and the client for asyncio.

    serialize = AsyncSerializer(AvroSerializer(client, schema))
    frame = await serialize({"id": 7}, topic="orders")

They wrap the synchronous ones. A record whose schema is cached is handled in the event loop: it takes microseconds and
no I/O. On a cache miss a thread asks the registry.

Functions such as `to_dict` run in the event loop. Where a schema has rules, whose executors may block, a thread handles
the whole record.
"""

import asyncio
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from strata.serdes.deserializer import Deserializer
from strata.serdes.serializer import Serializer
from strata.serdes.subject_name_strategies import Context, RecordContext

__all__ = ["AsyncDeserializer", "AsyncSerializer", "call"]

P = ParamSpec("P")
T = TypeVar("T")


class AsyncSerializer:
    """An awaitable form of a serializer.

    Args:
        serializer: the serializer of a format.
    """

    def __init__(self, serializer: Serializer) -> None:
        self._plain = serializer

    async def __call__(
        self, value: Any, ctx: RecordContext | None = None, *, topic: str | None = None, field: str = "value"
    ) -> bytes | None:
        """Serialize a value to a frame, as `Serializer.__call__` does.

        Args:
            value: the value; None is a tombstone.
            ctx: the topic and field of the record, such as confluent-kafka's `SerializationContext`.
            topic: the topic, where there is no `ctx`.
            field: `key` or `value`, where there is no `ctx`.

        Returns:
            The frame, or None for a tombstone.

        Raises:
            EncodeError: If the value does not fit the schema.
            NoSubject: If the subject name strategy lacks a topic or a record name.
            SchemaError: If the schema is of another format, cannot be used or cannot read values of the local one.
            RuleError: If a rule of the schema fails.
            FrameError: If the framing needs a GUID or headers that are not there.
            RegistryError: If the registry rejects a request, such as 409 for an incompatible schema.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
            TokenError: If the OAuth token endpoint gives no token.
        """
        if value is None:
            return None
        plain, context = self._plain, Context(topic, field) if ctx is None else ctx
        target = plain.known(context)
        if target is None:
            target = await asyncio.to_thread(plain.target, context)
        if target.rules is not None:
            return await asyncio.to_thread(plain.write, value, context, target)
        return plain.write(value, context, target)


class AsyncDeserializer:
    """An awaitable form of a deserializer.

    Args:
        deserializer: the deserializer of a format.
    """

    def __init__(self, deserializer: Deserializer) -> None:
        self._plain = deserializer

    async def __call__(
        self,
        data: bytes | None,
        ctx: RecordContext | None = None,
        *,
        topic: str | None = None,
        field: str = "value",
        headers: Any = None,
    ) -> Any:
        """Deserialize a frame to a value, as `Deserializer.__call__` does.

        Args:
            data: the frame; None is a tombstone.
            ctx: the topic, field and headers of the record, such as confluent-kafka's `SerializationContext`.
            topic: the topic, where there is no `ctx`.
            field: `key` or `value`, where there is no `ctx`.
            headers: the record headers, as pairs or a mapping, where there is no `ctx`.

        Returns:
            The value, or None for a tombstone.

        Raises:
            FrameError: If the bytes are not a registry frame.
            DecodeError: If the payload does not decode; `reason` says why.
            SchemaError: If the schema is of another format or cannot be used; `NoMessage` for a bad message path.
            RuleError: If a rule of the schema fails.
            NoSubject: If the latest version is wanted and the subject name strategy lacks a topic or a record name.
            RegistryError: If the registry rejects a request, such as 404 for an unknown schema id.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
            TokenError: If the OAuth token endpoint gives no token.
        """
        if data is None:
            return None
        plain, context = self._plain, Context(topic, field, headers) if ctx is None else ctx
        frame = plain.open(data, context)
        source = plain.known(frame, context)
        if source is None:
            source = await asyncio.to_thread(plain.source, frame, context)
        if source.rules is not None:
            return await asyncio.to_thread(plain.read, frame, context, source, data)
        return plain.read(frame, context, source, data)


async def call(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking method, such as one of the client, in a thread and return its result.

        subjects = await call(client.get_subjects)

    Args:
        method: the method, or any other function that blocks.
        *args: its positional arguments.
        **kwargs: its keyword arguments.

    Raises:
        Exception: Whatever the method raises.
    """
    return await asyncio.to_thread(method, *args, **kwargs)
