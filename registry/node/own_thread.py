"""Runs long blocking calls in threads of their own, for which no shutdown waits."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["in_own_thread"]

_T = TypeVar("_T")


async def in_own_thread(call: Callable[[], _T], name: str) -> _T:
    """Run a call that may take long in a daemon thread, and return its result.

    Args:
        call: the call.
        name: the name of the thread.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, failure: BaseException | None) -> None:
        if done.done():
            return
        if failure is None:
            done.set_result(result)  # type: ignore[arg-type]
        else:
            done.set_exception(failure)

    def run() -> None:
        result, failure = None, None
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - the waiting task gets it
            failure = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True, name=name).start()
    return await done
