"""Coroutines that become a task only when they need one."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar

import pytest

from strata.registry.core.log_reader import in_task
from strata.registry.http.protocol import begin

_MARK: ContextVar[str] = ContextVar("mark", default="")


async def _waits(future: "asyncio.Future[str]", seen: list[object]) -> None:
    _MARK.set("inside")
    seen.append(asyncio.current_task() is None)
    try:
        seen.append(await future)
    except (OSError, asyncio.CancelledError) as error:
        seen.append(type(error))
    seen.append((asyncio.current_task() is None, _MARK.get()))


async def _settled(coroutine: Coroutine[object, None, None]) -> set[asyncio.Task[None]]:
    """Begin a coroutine, and return its tasks a few turns later."""
    tasks = set[asyncio.Task[None]]()
    begin(asyncio.get_running_loop(), coroutine, tasks)
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize(
    ("end", "result"),
    [
        (lambda future: future.set_result("done"), "done"),
        (lambda future: future.set_exception(OSError()), OSError),
        (lambda future: future.cancel(), asyncio.CancelledError),
    ],
)
async def test_future(end: "Callable[[asyncio.Future[str]], object]", result: object) -> None:
    """A coroutine that waits for a future goes on with its result or error, in its own context and without a task."""
    future, seen = asyncio.get_running_loop().create_future(), list[object]()
    assert await _settled(_waits(future, seen)) == set()
    assert seen == [True]
    end(future)
    await asyncio.sleep(0)
    assert seen == [True, result, (True, "inside")]
    assert _MARK.get() == ""


async def test_in_task() -> None:
    """A coroutine that asks for a task goes on in one, in the same context, and the task is kept until it ends."""
    future, seen = asyncio.get_running_loop().create_future(), list[object]()

    async def needs_task() -> None:
        token = _MARK.set("outer")
        await in_task()
        async with asyncio.timeout(30):
            seen.append(await future)
        _MARK.reset(token)  # raises in another context
        seen.append("end")

    tasks = await _settled(needs_task())
    assert len(tasks) == 1
    future.set_result("done")
    await asyncio.wait(tasks)
    await asyncio.sleep(0)
    assert (seen, tasks) == (["done", "end"], set())


async def test_in_task_already() -> None:
    """In a task, `in_task` returns in the same turn."""
    turns = list[str]()
    asyncio.get_running_loop().call_soon(turns.append, "next")
    await in_task()
    assert turns == []
