r"""The export file: JSON lines, of which the first is a header and the last a digest of all bytes before it.

    {"format":"strata-export","version":1,"source":"…","taken":"…Z","end":812,"records":60,"subjects":20,…}
    {"key":"{\"keytype\":\"SCHEMA\",…}","value":"{\"subject\":…}"}
    …
    {"sha256":"…"}

`key64` and `value64` replace `key` and `value` for bytes that are not UTF-8. A name ending in `.gz` means gzip. The
file appears under its name only when it is complete.
"""

import base64
import gzip
import hashlib
import json
import os
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strata.registry.transfer.copies import Copy, TransferError, copy_of_records
from strata.storage.log import Record

__all__ = ["STANDARD_STREAM", "check_free", "read_export", "write_export"]

STANDARD_STREAM = "-"
_UNLISTED = ("association", "record")  # the value for the first exports of services, whose headers lack it
_FORMAT = "strata-export"
_VERSION = 1


def check_free(name: str, *, force: bool) -> None:
    """Reject a file that exists, unless it may be replaced.

    Raises:
        TransferError: if it exists, or its folder does not.
    """
    path = Path(name)
    if name == STANDARD_STREAM:
        return
    if path.exists() and not force:
        raise TransferError(f"{name} already exists; choose another name, or replace it with --force")
    if path.exists() and not path.is_file():
        raise TransferError(f"{name} is not a regular file and is not replaced; `-` writes to standard output")
    if not path.parent.is_dir():
        raise TransferError(f"cannot write {name}: no such folder")


def write_export(name: str, copy: Copy) -> None:
    """Write a copy to a temporary file, and rename that once it is on disk.

    Args:
        name: the file; `-` means standard output.
        copy: the copy.

    Raises:
        TransferError: if the file cannot be written.
    """
    if name == STANDARD_STREAM:
        sys.stdout.buffer.writelines(_lines(copy))
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                    packed.writelines(_lines(copy))
            else:
                raw.writelines(_lines(copy))
            raw.flush()
            os.fsync(raw.fileno())
        part.replace(path)
    except OSError as error:
        raise TransferError(f"cannot write {name}: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def read_export(name: str) -> Copy:
    """Read a whole export file and validate it before use.

    Args:
        name: the file; `-` means standard input.

    Raises:
        TransferError: if the file does not exist, is not an export, is damaged or truncated, or has a later format.
    """
    lines = _bytes_of(name).splitlines(keepends=True)
    header = _json(lines[0]) if lines else None
    if header is None or header.get("format") != _FORMAT:
        raise TransferError(f"{name} is not an export file of strata")
    if header.get("version") != _VERSION:
        raise TransferError(f"{name} has format version {header.get('version')}; this release reads version {_VERSION}")
    footer = _json(lines[-1])
    if footer is None or "sha256" not in footer:
        raise TransferError(f"{name} is truncated: its last line is not a digest")
    if footer["sha256"] != hashlib.sha256(b"".join(lines[:-1])).hexdigest():
        raise TransferError(f"{name} is damaged: its content does not match the digest in its last line")
    try:
        records = [_record(json.loads(line)) for line in lines[1:-1]]
        source, end, count = str(header["source"]), int(header["end"]), int(header["records"])
        unlisted = frozenset(map(str, header.get("untold", _UNLISTED if header.get("overRest") else ())))
    except (ValueError, KeyError, TypeError) as error:
        raise TransferError(f"{name} is damaged: {error!r}") from None
    if len(records) != count or len({record.key for record in records}) != count:
        raise TransferError(f"{name} is damaged: expected {count} records with distinct keys, as its header says")
    copy = copy_of_records(f"{name} (an export of {source})", records)
    return replace(copy, end=end, over_rest=header.get("overRest") is True, unlisted=unlisted)


def _lines(copy: Copy) -> Iterator[bytes]:
    digest = hashlib.sha256()
    taken = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "source": copy.source,
        "taken": taken,
        "overRest": copy.over_rest,
        "untold": sorted(copy.unlisted),
        "end": copy.end,
        **copy.counts(),
    }
    for content in (header, *map(_line, copy.records)):
        line = _dump(content)
        digest.update(line)
        yield line
    yield _dump({"sha256": digest.hexdigest()})


def _dump(content: dict[str, object]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _line(record: Record) -> dict[str, object]:
    return {**_part("key", record.key), **_part("value", record.value or b"")}


def _part(name: str, data: bytes) -> dict[str, str]:
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}64": base64.b64encode(data).decode()}


def _record(line: dict[str, str]) -> Record:
    return Record(_whole("key", line), _whole("value", line))


def _whole(name: str, line: dict[str, str]) -> bytes:
    return line[name].encode() if name in line else base64.b64decode(line[f"{name}64"], validate=True)


def _bytes_of(name: str) -> bytes:
    if name == STANDARD_STREAM:
        return sys.stdin.buffer.read()
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise TransferError(f"cannot read {name}: {error.strerror or error}") from None
    if not name.endswith(".gz"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise TransferError(f"{name} is damaged or truncated: {error}") from None


def _json(line: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
