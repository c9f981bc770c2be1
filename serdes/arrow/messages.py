"""Messages of librdkafka in compiled code: their values, or their keys, are put one behind the other.

A message is a `rd_kafka_message_t`, whose fields are part of librdkafka's public interface (`rdkafka.h`). No Python
object is made of it: that costs more than everything else that is done to a message.

Rules of this file: it calls only the functions of librdkafka whose addresses it gets. Each message is destroyed once:
its entry in the table of messages becomes 0 first.
"""

from strata.serdes.arrow.memory import call_2, call_4, compiled, copy, get, load_64, load_i32, put

__all__ = ["run"]

DESCRIBE, TAKE, RELEASE = 0, 1, 2  # the steps

# The table of numbers that a job consists of.
MESSAGES = 0  # the address of a table of messages
COUNT = 1  # how many there are; after the step `DESCRIBE`, how many have a value that is wanted
END = 2  # the first offset that is not wanted
IS_KEY = 3
NAME = 4  # the address of the name of the record header that is wanted
HEADERS_OF = 5  # the addresses of `rd_kafka_message_headers`, `rd_kafka_header_get_last` and `rd_kafka_message_destroy`
LAST_HEADER = 6
DESTROY = 7
SIZES = 8  # the addresses of tables that `DESCRIBE` fills: the size of each value, -1 if there is none
OFFSETS = 9  # the offset of each message
HEADERS = 10  # the address and the size of each header, both 0 if there is none
DATA = 11  # the address that `TAKE` copies to
SCRATCH = 12  # the address of three numbers
BYTES = 13  # the size of all values
IS_END = 14  # whether the end has been reached
ERROR = 15  # an error code of librdkafka, or 0
HAS_HEADERS = 16
ROOM = 17  # the size of each table
STEP = 18
ENTRIES = 19

# The fields of `rd_kafka_message_t`, in bytes from its start. A key lies 16 bytes behind the value, and so its size.
_PAYLOAD, _SIZE, _OFFSET = 24, 32, 56
_TO_KEY = 16
_PARTITION_EOF = -191


@compiled
def _describe(job: int) -> None:
    """Find the sizes, offsets and headers of messages, and destroy those that hold no record that is wanted."""
    messages, destroy = get(job, MESSAGES), get(job, DESTROY)
    skipped = _TO_KEY if get(job, IS_KEY) else 0
    kept, total = 0, 0
    for number in range(get(job, COUNT)):
        message = get(messages, number)
        error, offset = load_i32(message), load_64(message + _OFFSET)
        put(messages, number, 0)
        if error == 0 and offset < get(job, END):
            put(messages, kept, message)
            size = load_64(message + _SIZE + skipped) if load_64(message + _PAYLOAD + skipped) else -1
            put(get(job, SIZES), kept, size)
            put(get(job, OFFSETS), kept, offset)
            _find_header(job, message, kept)
            total += max(size, 0)
            kept += 1
        else:
            if error != 0 and error != _PARTITION_EOF:
                put(job, ERROR, error)
            else:
                put(job, IS_END, 1)
            call_2(destroy, message, 0)
    put(job, COUNT, kept)
    put(job, BYTES, total)


@compiled
def _find_header(job: int, message: int, row: int) -> None:
    headers, scratch = get(job, HEADERS), get(job, SCRATCH)
    put(scratch, 1, 0)
    put(scratch, 2, 0)
    if call_2(get(job, HEADERS_OF), message, scratch) == 0 and (
        call_4(get(job, LAST_HEADER), get(scratch, 0), get(job, NAME), scratch + 8, scratch + 16) == 0
        and get(scratch, 1) != 0
    ):
        put(job, HAS_HEADERS, 1)
    else:
        put(scratch, 1, 0)
    put(headers, 2 * row, get(scratch, 1))
    put(headers, 2 * row + 1, get(scratch, 2))


@compiled
def _take(job: int) -> None:
    """Copy the values of messages that `_describe` has kept, and destroy the messages."""
    messages, sizes, target = get(job, MESSAGES), get(job, SIZES), get(job, DATA)
    field = _PAYLOAD + (_TO_KEY if get(job, IS_KEY) else 0)
    for row in range(get(job, COUNT)):
        message, size = get(messages, row), get(sizes, row)
        if size > 0:
            copy(load_64(message + field), target, size)
            target += size
        put(messages, row, 0)
        call_2(get(job, DESTROY), message, 0)


@compiled
def _release(job: int) -> None:
    """Destroy the messages that the table still holds."""
    messages = get(job, MESSAGES)
    for number in range(get(job, ROOM)):
        message = get(messages, number)
        if message != 0:
            put(messages, number, 0)
            call_2(get(job, DESTROY), message, 0)


@compiled
def run(job: int) -> int:
    """Do one step with a table of messages: describe them, take their values, or destroy what is left of them."""
    step = get(job, STEP)
    if step == DESCRIBE:
        _describe(job)
    elif step == TAKE:
        _take(job)
    else:
        _release(job)
    return 0
