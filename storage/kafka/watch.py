"""Detection of records that a reader can no longer see: compaction dropped them, or another topic took the name.

Compaction drops a tombstone after `delete.retention.ms`. A reader that continues after a longer time never learns of
the deletion, so it must read again from the start. The time that counts is the time since the reader was last at the
end of the log. It is measured on two clocks: one that also runs while the machine sleeps, and the wall clock, which is
right after a virtual machine was stopped. A topic that was deleted and created again has another id, even when it has
since grown beyond the reader's offset.

Rules of this file: no read or append needs a request here. Times are kept in memory, and the topic is looked up at most
once every `_CONFIRMED_S` seconds.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from strata.storage.kafka.topic import Topic, retention_of
from strata.storage.log import START, LogCompacted, LogError, LogReplaced

__all__ = ["Clock", "Moment", "Seen", "TopicWatch", "clock"]

_DUE_S, _CONFIRMED_S, _SILENT_S = 0.25, 0.5, 5.0
_TRUSTED_S = 30.0
_RETENTION_S = 60.0
_ATTEMPT_S = 1.0
_PAUSE_S = 0.05
# The other half allows for what the clocks do not show: the age of an open transaction, the time a read takes, drift.
_SHARE = 0.5
_MARKS = 8
_REFUSALS = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


class Moment(NamedTuple):
    """A point in time on two clocks, in seconds."""

    running: float
    wall: float

    def since(self, earlier: "Moment") -> float:
        """Return the seconds since an earlier moment, by the clock on which more time has passed."""
        return max(self.running - earlier.running, self.wall - earlier.wall)


Clock = Callable[[], Moment]


def clock() -> Moment:
    """Return the current moment; without `CLOCK_BOOTTIME`, only the wall clock shows that the machine slept."""
    return Moment(time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT), time.time())


class Seen:
    """The moments at which the log was known to hold nothing beyond an offset. Thread-safe."""

    def __init__(self, topic: str, retention_s: float, now: Clock) -> None:
        self._topic, self._now = topic, now
        self.retention_s = retention_s
        self._newest = START, now()
        self._marks = deque([self._newest])
        self._lock = threading.Lock()

    def since(self, after: int) -> Moment:
        """Return the moment at which a reader at an offset was at the end of the log.

        Raises:
            LogCompacted: That was too long ago.
        """
        if after == START:
            return self._now()
        with self._lock:
            moment = next((moment for offset, moment in reversed(self._marks) if offset <= after), None)
        if moment is None:
            raise LogCompacted(self._too_old(after))
        self.check(moment, after)
        return moment

    def check(self, moment: Moment, after: int) -> None:
        """Check that no tombstone written since a moment can be gone.

        Args:
            moment: When the reader was at the end of the log.
            after: The reader's offset, for the message.

        Raises:
            LogCompacted: Too much time has passed.
        """
        if self._now().since(moment) > self._limit_s:
            raise LogCompacted(self._too_old(after))

    def note(self, last: int, moment: Moment) -> None:
        """Remember that the log held nothing beyond an offset at a moment; a few such marks are kept, oldest first."""
        if self._is_known(last, moment):  # without the lock: every fresh read comes here
            return
        with self._lock:
            now = self._now()
            while self._marks and now.since(self._marks[0][1]) > self._limit_s:
                self._marks.popleft()
            if self._marks and self._is_known(last, moment):
                return
            self._newest = last, moment
            self._marks.append(self._newest)

    def _is_known(self, last: int, moment: Moment) -> bool:
        """Return whether the newest mark says as much; one that is too old says nothing of a log that lost records."""
        newest, then = self._newest
        age = moment.since(then)
        return age < self._limit_s / _MARKS or (last < newest and age <= self._limit_s)

    @property
    def _limit_s(self) -> float:
        return self.retention_s * _SHARE

    def _too_old(self, after: int) -> str:
        return (
            f"topic {self._topic}: this node last reached the end, at offset {after}, more than {self._limit_s:g} s "
            "ago, half of delete.retention.ms. It may have missed deletions since, and reads the log from the start"
        )


class TopicWatch:
    """A periodic check that the topic is still the one that was opened. Thread-safe."""

    def __init__(self, admin: AdminClient, topic: Topic, seen: Seen, now: Clock) -> None:
        self._admin, self._topic, self._seen, self._now = admin, topic, seen, now
        self._confirmed = self._asked = self._renewed = self._configured = now()
        self._again_s = _CONFIRMED_S
        self._replaced = False
        self._lock = threading.Lock()

    def is_confirmed_lately(self, now: Moment) -> bool:
        """Return whether Kafka has confirmed the topic so recently that it cannot have been replaced since."""
        return not self._replaced and now.since(self._confirmed) < _CONFIRMED_S

    def is_due(self, now: Moment) -> bool:
        """Return whether `renew` should be called, so that the last confirmation stays recent."""
        return now.since(self._renewed) >= _DUE_S

    def renew(self) -> None:
        """Ask Kafka for a new confirmation before the last one is too old; what is wrong is left to `confirm`."""
        with self._lock:
            asked = self._renewed = self._now()
            if not self._replaced:
                with suppress(LogError):
                    if self._is_confirmed():
                        self._confirmed = self._asked = asked

    def confirm(self, deadline: float, *, at_once: bool = False) -> None:
        """Check that the topic is the one that was opened; a recent answer is reused.

        Args:
            deadline: When to give up, on the clock of `time.monotonic`, in seconds.
            at_once: Ask Kafka even if the last answer is recent.

        Raises:
            LogReplaced: Another topic has the name.
            LogError: The topic is gone, or Kafka has not answered for a long time.
        """
        if not at_once and self._is_answered(self._now()):
            return  # without waiting for a thread that renews
        with self._lock:
            asked = self._now()
            if not at_once and self._is_answered(asked):
                return
            while not self._is_confirmed():
                if not at_once and self._now().since(self._confirmed) < _TRUSTED_S:
                    # Reads do not wait for a controller that is being replaced.
                    self._asked, self._again_s = self._now(), _SILENT_S
                    return
                if time.monotonic() > deadline:
                    raise LogError(f"topic {self._topic.name}: Kafka did not answer, or the topic does not exist")
                with suppress(KafkaException):
                    self._admin.list_topics(timeout=_ATTEMPT_S)
                time.sleep(_PAUSE_S)
            self._confirmed = self._asked = self._renewed = asked
            self._again_s = _CONFIRMED_S
            self._refresh_retention()

    def _is_answered(self, now: Moment) -> bool:
        return not self._replaced and now.since(self._asked) < self._again_s

    def _is_confirmed(self) -> bool:
        """Return whether Kafka confirms the topic's id; false if it does not answer or knows no such topic."""
        name = self._topic.name
        if not self._replaced:
            try:
                asked = self._admin.describe_topics(TopicCollection([name]), request_timeout=_ATTEMPT_S)[name]
                topic_id = str(asked.result(_ATTEMPT_S + 1).topic_id)
            except FutureTimeoutError:
                return False
            except KafkaException as error:
                if error.args[0].code() in _REFUSALS:
                    raise LogError(f"topic {name}: cannot be looked up: {error.args[0].str()}") from error
                return False
            self._replaced = topic_id != self._topic.topic_id
        if self._replaced:
            raise LogReplaced(f"topic {name} was deleted and created again; this node reads it from the start")
        return True

    def _refresh_retention(self) -> None:
        if self._asked.since(self._configured) >= _RETENTION_S:
            self._configured = self._asked
            retention = retention_of(self._admin, self._topic.name)
            self._seen.retention_s = self._seen.retention_s if retention is None else retention
