"""Coroutines that become a task only when they need one.

Most requests that are answered from memory never wait, or wait for one future, and need no task for that: making and
ending a task costs a tenth of such an answer. Like a task, a coroutine that is begun here first runs in the next turn
of the event loop, so that all requests of a turn are parsed before the first one is answered.

Such a coroutine has no current task, which `asyncio.timeout` and some libraries need. It awaits `in_task()` before it
may come to such code.
"""

import asyncio
from collections.abc import Coroutine
from contextvars import Context, copy_context
from functools import partial
from typing import Any

__all__ = ["begin", "in_task"]


def begin(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, None, None], tasks: "set[asyncio.Task[None]]"
) -> None:
    """Run a coroutine soon.

    Args:
        loop: the event loop.
        coroutine: the coroutine; it must not raise.
        tasks: gets its task while there is one, because the event loop keeps no reference to it.
    """
    context = copy_context()
    loop.call_soon(_advance, loop, coroutine, tasks, context, None, context=context)


async def in_task() -> None:
    """Return in a task: in the next turn of the event loop if the caller is not in one yet."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


def _advance(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, None, None],
    tasks: "set[asyncio.Task[None]]",
    context: Context,
    _awaited: object,
) -> None:
    try:
        awaited = coroutine.send(None)
    except StopIteration:
        return
    if awaited is None:  # a pause until the next turn
        task = loop.create_task(coroutine, context=context)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    else:
        awaited._asyncio_future_blocking = False  # the sign of a task to a future that it takes it (asyncio.isfuture)
        awaited.add_done_callback(partial(_advance, loop, coroutine, tasks, context), context=context)
