"""The messages of a topic by librdkafka's C functions, a batch of bytes at a time.

confluent-kafka brings librdkafka along, but makes an object of each message, which costs more than to judge it. This
module uses the consumer without a group of the same library, so there is nothing to commit to.

Rules of this file: Kafka in, bytes out. Each message is destroyed before `take` returns or raises; `close` would wait
for the others.
"""

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from confluent_kafka import cimpl
from numpy.typing import NDArray

from strata.gitops.errors import GitopsError
from strata.serdes.arrow import messages as steps
from strata.serdes.arrow.entry_points import run_messages

__all__ = ["Messages", "Taken"]

_POINTER, _TEXT, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {  # what each returns, and what it takes
    "conf_new": (_POINTER,),
    "conf_set": (_INT, _POINTER, _TEXT, _TEXT, _TEXT, ctypes.c_size_t),
    "conf_destroy": (None, _POINTER),
    "new": (_POINTER, _INT, _POINTER, _TEXT, ctypes.c_size_t),
    "destroy": (None, _POINTER),
    "poll": (_INT, _POINTER, _INT),
    "topic_new": (_POINTER, _POINTER, _TEXT, _POINTER),
    "topic_destroy": (None, _POINTER),
    "queue_new": (_POINTER, _POINTER),
    "queue_destroy": (None, _POINTER),
    "consume_start_queue": (_INT, _POINTER, ctypes.c_int32, ctypes.c_int64, _POINTER),
    "consume_stop": (_INT, _POINTER, ctypes.c_int32),
    "consume_batch_queue": (ctypes.c_ssize_t, _POINTER, _INT, _POINTER, ctypes.c_size_t),
    "last_error": (_INT,),
    "err2str": (_TEXT, _INT),
    "message_headers": (_INT, _POINTER, _POINTER),
    "header_get_last": (_INT, _POINTER, _TEXT, _POINTER, _POINTER),
    "message_destroy": (None, _POINTER),
}
_CONSUMER: Final = 1
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES: Final = 128 << 20
_ERROR_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class Taken:
    """What messages held.

    Attributes:
        data: their values, or their keys, one behind the other.
        sizes: the length of each value; negative if there is none.
        offsets: their offsets.
        headers: the record header of each that was asked for; None if no message has one.
        is_end: whether the end of the partition has been reached, or the offset at which to end.
    """

    data: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    headers: list[bytes | None] | None
    is_end: bool


class Messages:
    """A consumer of a topic without a group; close it.

    Args:
        topic: the name of the topic.
        settings: the settings of librdkafka.
        header: the name of the record header that is wanted.
        is_key: whether the keys of messages are read instead of their values.
        most: how many messages to take at once.

    Raises:
        GitopsError: If the settings cannot be used.
    """

    def __init__(self, topic: str, settings: Mapping[str, str], header: str, *, is_key: bool, most: int) -> None:
        self._call = _functions()
        _keep_memory()
        self._queues: dict[int, int] = {}
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        conf = self._call["conf_new"]()
        pairs = [(name.encode(), value.encode()) for name, value in settings.items()]
        is_set = not any(self._call["conf_set"](conf, *pair, error, _ERROR_BYTES) for pair in pairs)
        self._handle = self._call["new"](_CONSUMER, conf, error, _ERROR_BYTES) if is_set else None
        if self._handle is None:
            self._call["conf_destroy"](conf)
            raise GitopsError(f"the settings of Kafka are not usable: {_decoded(error.value)}")
        self._topic = self._call["topic_new"](self._handle, topic.encode(), None)
        self._messages, self._scratch = np.zeros(most, np.int64), np.zeros(3, np.int64)
        self._name = ctypes.create_string_buffer(header.encode())
        self._job = np.zeros(steps.ENTRIES, np.int64)
        self._set(
            {
                steps.MESSAGES: self._messages.ctypes.data,
                steps.ROOM: most,
                steps.IS_KEY: is_key,
                steps.NAME: ctypes.addressof(self._name),
                steps.HEADERS_OF: _address(self._call["message_headers"]),
                steps.LAST_HEADER: _address(self._call["header_get_last"]),
                steps.DESTROY: _address(self._call["message_destroy"]),
                steps.SCRATCH: self._scratch.ctypes.data,
            }
        )

    def _set(self, entries: Mapping[int, int]) -> None:
        for entry, number in entries.items():
            self._job[entry] = number

    def close(self) -> None:
        """Close the connections."""
        for partition in [*self._queues]:
            self.stop(partition)
        self._call["topic_destroy"](self._topic)
        self._call["destroy"](self._handle)

    def start(self, partition: int, offset: int) -> None:
        """Begin to fetch a partition, unless that has begun.

        Raises:
            GitopsError: If the partition cannot be read.
        """
        if partition not in self._queues:
            queue = self._call["queue_new"](self._handle)
            if self._call["consume_start_queue"](self._topic, partition, offset, queue):
                self._call["queue_destroy"](queue)
                raise GitopsError(self._reason(self._call["last_error"]()))
            self._queues[partition] = queue

    def stop(self, partition: int) -> None:
        """Fetch no more of a partition; messages that were fetched and not taken are dropped."""
        self._call["consume_stop"](self._topic, partition)
        self._call["queue_destroy"](self._queues.pop(partition))

    def take(self, partition: int, most: int, end: int, wait_ms: int) -> Taken:
        """Return what the next messages of a partition hold; there may be none.

        Args:
            partition: the partition.
            most: how many messages to take.
            end: the offset at which to end.
            wait_ms: how long to wait for so many.

        Raises:
            GitopsError: If the partition cannot be read.
        """
        self._call["poll"](self._handle, 0)  # such as a token of OAuth that expires
        try:
            queue, size = self._queues[partition], min(most, len(self._messages))
            count = self._call["consume_batch_queue"](queue, wait_ms, self._messages.ctypes.data, size)
            if count < 0:
                raise GitopsError(self._reason(self._call["last_error"]()))
            return self._taken(count, end)
        finally:
            self._run(steps.RELEASE)

    def _taken(self, count: int, end: int) -> Taken:
        sizes, offsets, headers = (np.empty(number, np.int64) for number in (count, count, 2 * count))
        self._set(
            {
                steps.COUNT: count,
                steps.END: end,
                steps.SIZES: sizes.ctypes.data,
                steps.OFFSETS: offsets.ctypes.data,
                steps.HEADERS: headers.ctypes.data,
                **dict.fromkeys((steps.IS_END, steps.ERROR, steps.HAS_HEADERS), 0),
            }
        )
        self._run(steps.DESCRIBE)
        if self._job[steps.ERROR]:
            raise GitopsError(self._reason(int(self._job[steps.ERROR])))
        rows = int(self._job[steps.COUNT])
        named: list[bytes | None] | None = None
        if self._job[steps.HAS_HEADERS]:
            pairs = headers[: 2 * rows].reshape(rows, 2).tolist()
            named = [ctypes.string_at(at, length) if at else None for at, length in pairs]
        data = np.empty(int(self._job[steps.BYTES]), np.uint8)
        self._job[steps.DATA] = data.ctypes.data
        self._run(steps.TAKE)
        return Taken(data, sizes[:rows], offsets[:rows], named, bool(self._job[steps.IS_END]))

    def _run(self, step: int) -> None:
        self._job[steps.STEP] = step
        run_messages(self._job.ctypes.data)

    def _reason(self, code: int) -> str:
        return _decoded(self._call["err2str"](code))


def _keep_memory() -> None:
    """Tell glibc to keep freed memory: batches of some MB would cost page faults each time."""
    with suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _KEPT_BYTES >> 2)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def _functions() -> dict[str, Any]:
    """Return librdkafka's functions: those of the library that confluent-kafka is linked with.

    Raises:
        GitopsError: If it hides them.
    """
    library = ctypes.CDLL(cimpl.__file__)
    functions = {}
    for name, (returned, *taken) in _FUNCTIONS.items():
        try:
            function = library[f"rd_kafka_{name}"]
        except AttributeError:
            raise GitopsError("confluent-kafka was built without a shared librdkafka; install it from PyPI") from None
        function.restype, function.argtypes = returned, taken
        functions[name] = function
    return functions


def _address(function: Any) -> int:
    return ctypes.cast(function, _POINTER).value or 0


def _decoded(text: bytes) -> str:
    return text.decode(errors="replace")
