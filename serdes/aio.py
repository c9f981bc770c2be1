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
from typing import Any, Generic, ParamSpec, TypeVar

from strata.serdes.base import T
from strata.serdes.deserializer import Deserializer
from strata.serdes.serializer import Serializer
from strata.serdes.subject_name_strategies import Context, RecordContext

__all__ = ["AsyncDeserializer", "AsyncSerializer", "call"]

P = ParamSpec("P")
R = TypeVar("R")


class AsyncSerializer(Generic[T]):
    """An awaitable form of a serializer.

    Args:
        serializer: the serializer of a format.
    """

    def __init__(self, serializer: Serializer[T]) -> None:
        self._plain = serializer

    async def __call__(
        self, value: T | None, ctx: RecordContext | None = None, *, topic: str | None = None, field: str = "value"
    ) -> bytes | None:
        """Serialize a value to a frame with the arguments, result and errors of `Serializer.__call__`."""
        if value is None:
            return None
        plain, context = self._plain, Context(topic, field) if ctx is None else ctx
        target = plain.known(context)
        if target is None:
            target = await asyncio.to_thread(plain.target, context)
        if target.rules is not None:
            return await asyncio.to_thread(plain.write, value, context, target)
        return plain.write(value, context, target)


class AsyncDeserializer(Generic[T]):
    """An awaitable form of a deserializer.

    Args:
        deserializer: the deserializer of a format.
    """

    def __init__(self, deserializer: Deserializer[T]) -> None:
        self._plain = deserializer

    async def __call__(
        self,
        data: bytes | None,
        ctx: RecordContext | None = None,
        *,
        topic: str | None = None,
        field: str = "value",
        headers: Any = None,
    ) -> T | None:
        """Deserialize a frame to a value with the arguments, result and errors of `Deserializer.__call__`."""
        if data is None:
            return None
        plain, context = self._plain, Context(topic, field, headers) if ctx is None else ctx
        frame = plain.open(data, context)
        source = plain.known(frame, context)
        if source is None:
            source = await asyncio.to_thread(plain.source, frame, context)
        if source.rules is not None:
            ruled: T = await asyncio.to_thread(plain.read, frame, context, source, data)
            return ruled
        value: T = plain.read(frame, context, source, data)
        return value


async def call(method: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
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
