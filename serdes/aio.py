"""The same serializers, deserializers and client for asyncio.

    serialize = AsyncSerializer(AvroSerializer(client, schema))
    frame = await serialize({"id": 7}, topic="orders")

There is one implementation, the plain one. A record whose schema is known is handled at once, in the event loop: it
takes microseconds and no I/O. Only what must be asked of the registry waits in a thread.

Functions such as `to_dict` run in the event loop; but where a schema has rules, whose executors may wait, the whole
record is handled in a thread.
"""

import asyncio
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from serdes.core import Deserializer, Serializer
from serdes.strategies import Context, RecordContext

__all__ = ["AsyncDeserializer", "AsyncSerializer", "call"]

P = ParamSpec("P")
T = TypeVar("T")


class AsyncSerializer:
    """Awaits the frames of a serializer."""

    def __init__(self, serializer: Serializer) -> None:
        self._plain = serializer

    async def __call__(
        self, value: Any, ctx: RecordContext | None = None, *, topic: str | None = None, field: str = "value"
    ) -> bytes | None:
        """The frame of a value; say where it goes by a context, or by topic and field."""
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
    """Awaits the values of a deserializer."""

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
        """The value in a frame; say where it came from by a context, or by topic, field and headers."""
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
    """Await a method of the plain client, which a thread runs.

    `subjects = await call(client.get_subjects)`
    """
    return await asyncio.to_thread(method, *args, **kwargs)
