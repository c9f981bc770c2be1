"""How long a node takes for each page with 100,000 schemas, and what that does to its reads of schemas by id."""

import http.client
import json
import random
import statistics
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from bench.filled_logs import VERSIONS, filled
from bench.report import table
from bench.wrk import Load, Request, check_installed, start, waited_for
from harness.registry import RegistryNode

__all__ = ["run"]

SCHEMAS = 100_000
TIMES = 30
AIM_MS = 100
QUICK_MS = 2.0  # pages with a smaller median share a row
AT_ONCE = 16
ROUNDS = 3
SECONDS = 3
PACES = (0, 5, 20)
_INDEX_S = 300
_VERSION = f"{{subject}}/versions/{VERSIONS}"
_WRITTEN = ", after a write"
# A name for the table: an address, in which {n} is the number of a random subject and {subject} the page of that.
PAGES: Mapping[str, str] = {
    "subjects": "/ui/subjects",
    "subjects, a later page": "/ui/subjects?page={page}",
    "subjects by part of a name": "/ui/subjects?name=orders-{n}",
    "subjects by format": "/ui/subjects?format=PROTOBUF",
    "subjects by level": "/ui/subjects?level=FULL",
    "subjects, deleted ones too": "/ui/subjects?deleted=also",
    "subjects, newest version first": "/ui/subjects?sort=changed",
    f"subjects{_WRITTEN}": "/ui/subjects",
    f"subjects by part of a name{_WRITTEN}": "/ui/subjects?name=orders-{n}",
    f"subjects, newest version first{_WRITTEN}": "/ui/subjects?sort=changed",
    f"search, two words of every schema{_WRITTEN}": "/ui/search?query=customer%20price",
    "a subject": "{subject}",
    "a version": _VERSION,
    "a version whose schema others share": "/ui/subjects/shop.orders-0-value/versions/1",
    "the text of a version": f"{_VERSION}/text",
    "two versions compared": "{subject}/diff?from=1&to=5",
    "a schema by its id": "/ui/schemas/ids/{n}",
    "search, a rare word": "/ui/search?query=order{n}",
    "search, two words of every schema": "/ui/search?query=customer%20price",
    "search, a beginning of many words": "/ui/search?query=o",
    "decode a record": "/ui/decode?data=00000000010204616263",
    "contexts": "/ui/contexts",
    "settings": "/ui/settings",
    "settings of a subject": "/ui/settings/shop.orders-{n}-value",
    "keys": "/ui/keys",
    "the log": "/ui/log",
    "health": "/ui/health",
    "form to register": "/ui/do/register?subject=shop.orders-{n}-value",
    "form to edit": "/ui/do/edit?subject=shop.orders-{n}-value&version=5",
}


def run(schemas: int = SCHEMAS) -> str:
    """Fill a log, load each page, and measure reads beside pages; return the tables."""
    check_installed()
    chance = random.Random(7)
    subjects = schemas // VERSIONS

    def address(page: str) -> str:
        number = chance.randrange(2, subjects)
        subject = f"/ui/subjects/shop.orders-{number}-value"
        return page.format(n=number, subject=subject, page=chance.randrange(2, max(3, subjects // 200)))

    with tempfile.TemporaryDirectory() as folder, RegistryNode(filled(folder, schemas), "--ui=full") as node:
        indexed = _index(node)
        times = {name: _times(node, name, partial(address, page)) for name, page in PAGES.items()}
        rates = _beside(node, lambda: address(chance.choice(list(PAGES.values()))))
    slow = [name for name, each in times.items() if statistics.median(each[1:]) > AIM_MS]
    head = ["page", "first, ms", "median, ms", "worst, ms"]
    figures = {name: (each[0], statistics.median(each[1:]), max(each[1:])) for name, each in times.items()}
    quick = [each for each in figures.values() if each[1] < QUICK_MS]
    rows = [[name, *map(_ms, each)] for name, each in figures.items() if each[1] >= QUICK_MS]
    if quick:
        rows.append([f"{len(quick)} others, at most", *(_ms(max(column)) for column in zip(*quick, strict=True))])
    beside = ["pages loaded per second", "reads per second", "p50 / p99 ms", "ratio to alone"]
    return (
        f"{schemas:,} schemas in {subjects:,} subjects on SQLite, one worker. Each page {TIMES} times, one after the "
        f"other, with subjects at random, and once before (*first*): the time from the request to the last byte. The "
        f"index of the search was complete {indexed:.1f} s after the first search. The aim is a median below {AIM_MS} "
        f"ms{'; missed by: ' + ', '.join(slow) if slow else ', which every page meets'}.\n\n{table(head, rows)}\n\n"
        f"`GET /schemas/ids/{{id}}` with {AT_ONCE} connections while another client loads all kinds of pages in turn, "
        f"medians of {ROUNDS} runs of {SECONDS} s:\n\n{table(beside, rates)}"
    )


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.1f}"


def _times(node: RegistryNode, name: str, address: Callable[[], str]) -> list[float]:
    """Load a page several times, each after a write if its name says so; return the milliseconds."""
    times = []
    for number in range(TIMES + 1):
        if name.endswith(_WRITTEN):
            _write(node, f"shop.{zlib.crc32(name.encode())}-{number}")
        times.append(_loaded(node, address()))
    return times


def _write(node: RegistryNode, subject: str) -> None:
    connection = node.connect()
    body = json.dumps({"schema": json.dumps({"type": "fixed", "name": "F", "size": 16})})
    connection.request("POST", f"/subjects/{subject}/versions", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"registration answered {answer.status}: {answer.read().decode()}")
    connection.close()


def _loaded(node: RegistryNode, path: str) -> float:
    """Load a page; return the milliseconds."""
    connection = node.connect()
    connection.connect()
    started = time.perf_counter()
    connection.request("GET", path, headers={"Accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    took = (time.perf_counter() - started) * 1000
    connection.close()
    if answer.status != 200:
        sys.exit(f"{path} answered {answer.status}")
    return took


def _index(node: RegistryNode) -> float:
    """Search until the index is complete; return the seconds."""
    started = time.monotonic()
    while time.monotonic() < started + _INDEX_S:
        connection = node.connect()
        connection.request("GET", "/v1/search?query=nothing")
        content = json.loads(connection.getresponse().read())
        connection.close()
        if content["complete"]:
            return time.monotonic() - started
        time.sleep(0.2)
    sys.exit(f"the index was not complete after {_INDEX_S} s")


def _beside(node: RegistryNode, address: Callable[[], str]) -> list[list[str]]:
    """Measure reads by id while pages are loaded at each pace, all paces in turn."""
    runs: dict[int, list[tuple[Load, float]]] = {pace: [] for pace in PACES}
    read = Request("GET", '"/schemas/ids/7"')
    for _ in range(ROUNDS):
        for pace, each in runs.items():
            with _pages(node, address, pace) as loaded:
                load = waited_for(start(node.url, read, AT_ONCE, SECONDS))
            each.append((load, len(loaded) / SECONDS))
    alone = statistics.median(load.per_second for load, _ in runs[0])
    rows = []
    for each in runs.values():
        rate, p50, p99, pages = (
            statistics.median(column)
            for column in zip(
                *((load.per_second, load.p50_ms, load.p99_ms, per_s) for load, per_s in each), strict=True
            )
        )
        rows.append([f"{pages:.1f}", f"{rate:,.0f}", f"{p50:.2f} / {p99:.2f}", f"{rate / alone:.2f}"])
    return rows


@contextmanager
def _pages(node: RegistryNode, address: Callable[[], str], pace: int) -> Iterator[list[float]]:
    """Load some pages a second, as far as the node keeps up, until the block ends; yield the times of those loaded."""
    done, loaded = threading.Event(), list[float]()

    def load() -> None:
        while not done.wait(1 / pace):
            try:
                loaded.append(_loaded(node, address()))
            except (OSError, http.client.HTTPException):
                return

    thread = threading.Thread(target=load)
    if pace:
        thread.start()
    try:
        yield loaded
    finally:
        done.set()
        if pace:
            thread.join()
