"""The decoding VM: one compiled function runs bytecode programs over frames, so new schemas need no compilation.

A program is a table of instructions, each an operation, a column and operands (`compiler.py` writes them). The VM
decodes row after row until all are done or it needs something from Python: more memory for a column, the program of a
schema id, or a frame rewritten by the deserializer. It returns what it needs and is called again for the same row.

A damaged row becomes a null, which overwrites what was decoded of it; the VM notes reason and place.

The VM accesses everything by the addresses in `state`, because compiled code would count references to arrays at every
call. `pc` is the address of an instruction, `c` of a column, `n` an index in the column (see `output.py`), `i` the
address of the next byte, `end` the address after the last. `sp` is the end of a stack; a loop has two entries on it,
the index outside and how many items are left in its block.

Code that every value runs is inlined into one function, and rare code is called, because a call costs as much as a
value.

Rules of this file: compiled code only; it raises nothing.
"""

from strata.serdes.arrow.decimals import decimal
from strata.serdes.arrow.memory import compiled, get, inlined, load_8, load_i32, put, store_8
from strata.serdes.arrow.numbers import (
    INVALID_INDEX,
    LIMIT,
    NEGATIVE_LENGTH,
    TRAILING_BYTES,
    TRUNCATED,
    fail,
    int_at,
    long_at,
    signed,
)
from strata.serdes.arrow.operations import (
    BOOL,
    BRANCH,
    CALL,
    CLOSE,
    COPY_4,
    COPY_8,
    DECIMAL,
    DONE,
    DROP,
    END,
    ENUM,
    FLOW,
    FRAME_ID,
    FRAME_MAGIC,
    FRAME_SHORT,
    FULL,
    INSTRUCTION,
    INT32,
    INT64,
    INT_LONG,
    ITEM,
    JUMP,
    LOOP,
    MARK,
    NEEDS_PROGRAM,
    NEEDS_REWRITE,
    NEEDS_ROOM,
    NEXT,
    NULL,
    OPEN,
    OPTION,
    REFUSED,
    REPEATED_KEY,
    RETURN,
    REWIND,
    SKIP_BYTES,
    SKIP_INT,
    SKIP_LONG,
    SKIP_SIZE,
    SPAN,
    STRING,
)
from strata.serdes.arrow.output import COLUMN, VALID, append_null, begin_list, end_list, mark, repeats, room_for_item
from strata.serdes.arrow.vm_state import (
    BASE,
    CODE,
    COLUMNS,
    DEPTH_LEFT,
    DETAIL,
    FRAMES,
    HASH,
    IDLE_LEFT,
    IDS,
    LAST,
    MASK,
    MAX_DEPTH,
    MAX_IDLE,
    NOTE,
    OFFSETS,
    PLACE,
    PRESENT,
    REASONS,
    REFUSALS,
    ROW,
    SEED,
    STACK,
    STACK_SIZE,
    STARTS,
    TABLE,
    WHO,
)
from strata.serdes.arrow.vm_values import boolean, copied, int32, int64, int_as_long, passed, rare, span, string, symbol

__all__ = ["run"]

_NO_ID = 1 << 40


@compiled
def run(state: int) -> int:
    """Decode rows from ROW to LAST of the state; return why the VM stopped, with ROW set to the row where it did."""
    columns, offsets, present = get(state, COLUMNS), get(state, OFFSETS), get(state, PRESENT)
    frames, base, last = get(state, FRAMES), get(state, BASE), get(state, LAST)
    known, start = _NO_ID, 0
    for row in range(get(state, ROW), last):
        if present != 0 and load_8(present + row - base) == 0:
            append_null(columns, row)
            continue
        i, end = frames + get(offsets, row - base), frames + get(offsets, row - base + 1)
        status = 0
        if end - i < 5 or load_8(i) != 0 or load_i32(i + 1) != known:
            status, start = entry(i, end, state)
            if status == NEEDS_PROGRAM:
                put(state, ROW, row)
                return NEEDS_PROGRAM
            known = load_i32(i + 1) if status == 0 else _NO_ID
        if status == 0:
            store_8(get(columns, VALID) + row, 1)
            status = -execute(start, row, i + 5, end, state)
        if status > 0:
            if status in (FULL, REPEATED_KEY):
                put(state, ROW, row)
                return NEEDS_ROOM if status == FULL else NEEDS_REWRITE
            append_null(columns, row)
            note(state, row, i, end, status)
    put(state, ROW, last)
    return DONE


@compiled
def note(state: int, row: int, i: int, end: int, status: int) -> None:
    """Note why a row has no value: row, failure, schema id or -1, place, and a number with details."""
    reason = get(state, REASONS) + 8 * NOTE * get(state, REFUSALS)
    put(state, REFUSALS, get(state, REFUSALS) + 1)
    put(reason, 0, row)
    put(reason, 1, status)
    put(reason, 2, get(state, WHO))
    put(reason, 3, min(get(state, PLACE), end) - (i + 5))
    put(reason, 4, get(state, DETAIL))


@compiled
def entry(i: int, end: int, state: int) -> tuple[int, int]:
    """Read a frame's header; return a failure or 0, and the program's address. Set WHO to the schema id."""
    put(state, WHO, -1)
    put(state, PLACE, i + 5)
    if end - i < 5:
        return FRAME_SHORT, 0
    if load_8(i) != 0:
        put(state, DETAIL, load_8(i))
        return FRAME_MAGIC, 0
    schema_id = (load_8(i + 1) << 24) | (load_8(i + 2) << 16) | (load_8(i + 3) << 8) | load_8(i + 4)
    if schema_id >= 0x80000000:
        put(state, DETAIL, schema_id)
        return FRAME_ID, 0
    put(state, WHO, schema_id)
    ids, mask = get(state, IDS), get(state, MASK)
    slot = (schema_id * HASH >> 7) & mask
    while get(ids, slot) != schema_id:
        if get(ids, slot) < 0:
            return NEEDS_PROGRAM, 0
        slot = (slot + 1) & mask
    start = get(get(state, STARTS), slot)
    if start < 0:
        put(state, DETAIL, -1 - start)
        return REFUSED, 0
    return 0, get(state, CODE) + INSTRUCTION * start


@inlined
def execute(pc: int, n: int, i: int, end: int, state: int) -> int:  # noqa: C901 - the table of operations
    """Run a program over one payload into row `n` of the columns; return 0, or the failure as a negative number."""
    columns, sp = get(state, COLUMNS), get(state, STACK)
    put(state, DEPTH_LEFT, get(state, MAX_DEPTH))
    put(state, IDLE_LEFT, get(state, MAX_IDLE))
    while True:
        op, c = get(pc, 0), columns + get(pc, 1)
        if op == STRING:
            i = string(c, n, i, end, state)
        elif op == INT64:
            i = int64(c, n, i, end, state)
        elif op == INT32:
            i = int32(c, n, i, end, state)
        elif op == INT_LONG:
            i = int_as_long(c, n, i, end, state)
        elif op == COPY_8:
            i = copied(8, c, n, i, end, state)
        elif op == COPY_4:
            i = copied(4, c, n, i, end, state)
        elif op == BOOL:
            i = boolean(c, n, i, end, state)
        elif op == SPAN:
            i = span(pc, c, n, i, end, state)
        elif op == ENUM:
            i = symbol(pc, c, n, i, end, state)
        elif op == DECIMAL:
            i = decimal(pc, c, n, i, end, state)
        elif op == SKIP_BYTES:
            i = passed(i, end, state)
        elif op == SKIP_LONG:
            _, i = long_at(state, i, end)
        elif op == SKIP_INT:
            _, i = int_at(state, i, end)
        elif op == SKIP_SIZE:
            i += get(pc, 2)
        elif op == NULL:
            append_null(c, n)
        elif op == MARK:
            mark(c, n)
        elif op == OPTION:
            pc, i = option(pc, c, n, i, end, state)
        elif op == NEXT:
            pc, n, i, sp = following(pc, c, n, i, end, sp, state)
        elif op == LOOP:
            pc, n, i, sp = begun(pc, c, n, i, sp, state)
        elif op == JUMP:
            pc += get(pc, 2)
        elif op == BRANCH:
            pc, i = branch(pc, i, end, state)
        elif op == END:
            return 0 if i == end else fail(state, i, TRAILING_BYTES if i < end else TRUNCATED)
        elif op < FLOW:
            i = rare(op, pc, c, n, i, end, state)
        else:
            pc, n, i, sp = jump(op, pc, c, n, i, sp, state)
        if i < 0:
            return i
        pc += INSTRUCTION


@inlined
def branch(pc: int, i: int, end: int, state: int) -> tuple[int, int]:
    """Read the index of a union; return the address of the instruction before those of its branch."""
    index, i = int_at(state, i, end)
    if i < 0:
        return pc, i
    if index & 1 or index >= get(pc, 2):
        return pc, fail(state, i, INVALID_INDEX)
    return get(state, CODE) + INSTRUCTION * (get(get(state, TABLE), get(pc, 3) + (index >> 1)) - 1), i


@inlined
def option(pc: int, c: int, n: int, i: int, end: int, state: int) -> tuple[int, int]:
    """Read the index of a union of null and one type; for null, skip the instructions of the value."""
    index, i = int_at(state, i, end)
    if i < 0:
        return pc, i
    if index & -3:
        return pc, fail(state, i, INVALID_INDEX)
    if index == get(pc, 3):
        append_null(c, n)
        return pc + get(pc, 2), i
    mark(c, n)
    return pc, i


@inlined
def begun(pc: int, c: int, n: int, i: int, sp: int, state: int) -> tuple[int, int, int, int]:
    """Begin a loop; its NEXT instruction runs next."""
    if sp + 16 > get(state, STACK) + get(state, STACK_SIZE):
        return pc, n, fail(state, i, LIMIT), sp
    put(sp, 0, n)
    put(sp, 1, 0)
    if get(pc, 1) >= 0:
        n = begin_list(c, n)
    return pc + get(pc, 2), n, i, sp + 16


@inlined
def following(pc: int, c: int, n: int, i: int, end: int, sp: int, state: int) -> tuple[int, int, int, int]:
    """Go to the next item of an array or map, or end the loop."""
    left = get(sp, -1)
    if left == 0:
        left, i = block(get(pc, 3), i, end, state)
        if i < 0:
            return pc, n, i, sp
    if left > 0:
        put(sp, -1, left - 1)
        n += 1
        if get(pc, 1) >= 0 and not room_for_item(state, c, n):
            return pc, n, -FULL, sp
        return pc + get(pc, 2), n, i, sp
    outside = get(sp, -2)
    if get(pc, 1) >= 0:
        if get(pc, 4) == 1:
            first = begin_list(c, outside) + 1
            if repeats(c + COLUMN, first, n + 1 - first, get(state, SEED)):
                return pc, n, -REPEATED_KEY, sp
        end_list(c, outside, n)
    return pc, outside, i, sp - 16


@inlined
def block(weight: int, i: int, end: int, state: int) -> tuple[int, int]:
    """Read the count of a block, which usually has one byte."""
    if i < end and weight == 0:
        count = load_8(i)
        if count & 129 == 0 and count >> 1 < end - i:
            return count >> 1, i + 1
    return any_block(weight, i, end, state)


@compiled
def any_block(weight: int, i: int, end: int, state: int) -> tuple[int, int]:
    """Read the count of a block; items without bytes have a weight, which counts against a limit."""
    count, i = long_at(state, i, end)
    if i < 0 or count == 0:
        return 0, i
    count = signed(count)
    if count < 0:
        size, after = long_at(state, i, end)
        if after < 0:
            return 0, fail(state, i, -after)
        if size & 1:
            return 0, fail(state, i, NEGATIVE_LENGTH)
        i = after
        count = -count  # -(-2**63) stays negative, and is rejected below
    if weight == 0:
        return (0, fail(state, i, TRUNCATED)) if count < 0 or count > end - i else (count, i)
    idle = get(state, IDLE_LEFT)
    if count < 0 or count > idle or count * weight > idle:
        return 0, fail(state, i, LIMIT)
    put(state, IDLE_LEFT, idle - count * weight)
    return count, i


@compiled
def jump(op: int, pc: int, c: int, n: int, i: int, sp: int, state: int) -> tuple[int, int, int, int]:
    """Run rare control flow: lists in defaults, calls, reading bytes again."""
    if op == CLOSE:
        end_list(c, get(sp, -1), n)
        return pc, get(sp, -1), i, sp - 8
    if op == ITEM:
        return pc, n + 1, i if room_for_item(state, c, n + 1) else -FULL, sp
    if op == RETURN:
        put(state, DEPTH_LEFT, get(state, DEPTH_LEFT) + get(pc, 3))
        return get(sp, -1), n, i, sp - 8
    if op == REWIND:
        return pc, n, get(sp, -1), sp
    if op == DROP:
        return pc, n, i, sp - 8
    if sp + 8 > get(state, STACK) + get(state, STACK_SIZE):
        return pc, n, fail(state, i, LIMIT), sp
    if op == CALL:
        depth = get(state, DEPTH_LEFT)
        if get(pc, 3) > depth:
            return pc, n, fail(state, i, LIMIT), sp
        put(state, DEPTH_LEFT, depth - get(pc, 3))
        put(sp, 0, pc)
        return get(state, CODE) + INSTRUCTION * (get(pc, 2) - 1), n, i, sp + 8
    if op == OPEN:
        put(sp, 0, n)
        return pc, begin_list(c, n), i, sp + 8
    put(sp, 0, i)  # KEEP
    return pc, n, i, sp + 8
