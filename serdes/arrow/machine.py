"""The machine that runs programs over frames: one compiled function for all schemas, since a schema is its data.

A program is rows of code, each an operation, a column, and operands (`program.py` writes them). The machine decodes
row after row until all are done or it needs something that only Python can give: more memory for a column, the program
for a schema id, a frame written anew. It says which, and is called again for the same row.

A row that is damaged leaves nothing behind but a null: what it had appended is taken back, reason and place are noted.

Everything is reached through addresses, which `state` holds: compiled code would count references to arrays at every
call. `pc` is the address of an instruction, `c` that of a column (see `output.py`), `i` that of the next byte, `end`
the one behind the last.

Rules of this file: compiled code only; it raises nothing.
"""

from serdes.arrow.memory import compiled, get, load_8, put
from serdes.arrow.numbers import (
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
from serdes.arrow.operations import (
    BRANCH,
    CALL,
    DONE,
    END,
    FLOW,
    FRAME_ID,
    FRAME_MAGIC,
    FRAME_SHORT,
    FULL,
    INSTRUCTION,
    JUMP,
    LOOP,
    MARK,
    NEEDS_PROGRAM,
    NEEDS_REWRITE,
    NEEDS_ROOM,
    NEXT,
    REFUSED,
    REPEATED_KEY,
    RETURN,
    REWIND,
)
from serdes.arrow.output import COLUMN, COUNT, append_list, append_null, repeats, take_back
from serdes.arrow.state import (
    BASE,
    CODE,
    COLUMNS,
    DETAIL,
    FRAMES,
    HASH,
    IDS,
    LAST,
    MASK,
    MAX_DEPTH,
    MAX_IDLE,
    OFFSETS,
    PLACE,
    PRESENT,
    REASONS,
    ROW,
    SEED,
    STACK,
    STACK_SIZE,
    STARTS,
    TABLE,
    WHO,
)
from serdes.arrow.values import value

__all__ = ["run"]


@compiled
def run(state: int) -> int:
    """Decode rows from ROW to LAST of the state; answers why it stopped, with ROW at the row in question."""
    columns, offsets, present = get(state, COLUMNS), get(state, OFFSETS), get(state, PRESENT)
    frames, base, last = get(state, FRAMES), get(state, BASE), get(state, LAST)
    for row in range(get(state, ROW), last):
        put(state, ROW, row)
        status = 0
        if present != 0 and load_8(present + row - base) == 0:
            missing = True
        else:
            i, end = frames + get(offsets, row - base), frames + get(offsets, row - base + 1)
            status, start = entry(i, end, state)
            if status == NEEDS_PROGRAM:
                return NEEDS_PROGRAM
            schema_id = get(state, WHO)
            if status == 0:
                status = -execute(get(state, CODE) + INSTRUCTION * start, i + 5, end, state)
            missing = status > 0
            if missing:
                take_back(columns, row)
                if status == FULL:
                    return NEEDS_ROOM
                if status == REPEATED_KEY:
                    return NEEDS_REWRITE
                note(state, row, status, schema_id, min(get(state, PLACE), end) - (i + 5))
        if missing and not append_null(state, columns):
            take_back(columns, row)
            return NEEDS_ROOM
    put(state, ROW, last)
    return DONE


@compiled
def note(state: int, row: int, status: int, schema_id: int, position: int) -> None:
    """Say why a row has no value: failure, schema id or -1, place, and a number that tells more."""
    reason = get(state, REASONS) + 32 * row
    put(reason, 0, status)
    put(reason, 1, schema_id)
    put(reason, 2, position)
    put(reason, 3, get(state, DETAIL))


@compiled
def entry(i: int, end: int, state: int) -> tuple[int, int]:
    """Look at a frame's header: a failure or 0, and where the program begins; WHO of the state is the schema id."""
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
    return 0, start


@compiled
def execute(pc: int, i: int, end: int, state: int) -> int:  # noqa: C901 - the table of operations
    """Run a program over one payload: 0, or the failure as a negative number."""
    code, columns, sp = get(state, CODE), get(state, COLUMNS), get(state, STACK)
    depth, idle = get(state, MAX_DEPTH), get(state, MAX_IDLE)
    while True:
        op = get(pc, 0)
        if op < FLOW:
            i = value(op, pc, columns + COLUMN * get(pc, 1), i, end, state)
            if i < 0:
                return i
            pc += INSTRUCTION
        elif op == BRANCH:
            index, i = int_at(state, i, end)
            if i < 0:
                return i
            if index & 1 or index >= get(pc, 2):
                return fail(state, i, INVALID_INDEX)
            pc = code + INSTRUCTION * get(get(state, TABLE), get(pc, 3) + (index >> 1))
        elif op == JUMP:
            pc = code + INSTRUCTION * get(pc, 2)
        elif op == NEXT:
            left = get(sp, -1)
            if left == 0:
                left, i, idle = block(get(pc, 4), i, end, idle, state)
                if i < 0:
                    return i
            if left > 0:
                put(sp, -1, left - 1)
                pc = code + INSTRUCTION * get(pc, 2)
            else:
                sp -= 8 * get(pc, 3)
                i = closed(pc, columns, i, get(sp, 0), state)
                if i < 0:
                    return i
                pc += INSTRUCTION
        elif op == END:
            return 0 if i == end else fail(state, i, TRAILING_BYTES if i < end else TRUNCATED)
        else:
            if sp + 16 > get(state, STACK) + get(state, STACK_SIZE):
                return fail(state, i, LIMIT)
            pc, i, sp, depth = jump(op, pc, i, sp, depth, state)
            if i < 0:
                return i


@compiled
def block(weight: int, i: int, end: int, idle: int, state: int) -> tuple[int, int, int]:
    """The count of a block, with what is left of the allowance for values that take no bytes."""
    count, i = long_at(state, i, end)
    if i < 0 or count == 0:
        return 0, i, idle
    count = signed(count)
    if count < 0:
        size, after = long_at(state, i, end)
        if after < 0:
            return 0, fail(state, i, -after), idle
        if size & 1:
            return 0, fail(state, i, NEGATIVE_LENGTH), idle
        i = after
        count = -count  # the least of all numbers stays negative, which is too many too
    if weight == 0:
        if count < 0 or count > end - i:
            return 0, fail(state, i, TRUNCATED), idle
    else:
        if count < 0 or count > idle:
            return 0, fail(state, i, LIMIT), idle
        idle -= count * weight
        if idle < 0:
            return 0, fail(state, i, LIMIT), idle
    return count, i, idle


@compiled
def closed(pc: int, columns: int, i: int, first: int, state: int) -> int:
    """The end of an array or map: its column learns where it ends."""
    if get(pc, 1) < 0:
        return i
    c = columns + COLUMN * get(pc, 1)
    if get(pc, 5) == 1 and repeats(c + COLUMN, first, get(state, SEED)):
        return -REPEATED_KEY
    return i if append_list(state, c) else -FULL


@compiled
def jump(op: int, pc: int, i: int, sp: int, depth: int, state: int) -> tuple[int, int, int, int]:
    """What is rarer than a branch: the beginning of a loop, calls, reading again."""
    code, following = get(state, CODE), pc + INSTRUCTION
    if op == LOOP:  # remembers where the child column stood, for the keys of a map
        if get(pc, 1) >= 0:
            put(sp, 0, get(get(state, COLUMNS) + COLUMN * (get(pc, 1) + 1), COUNT))
            sp += 8
        put(sp, 0, 0)
        return code + INSTRUCTION * get(pc, 2), i, sp + 8, depth
    if op == CALL:
        if get(pc, 3) == 1:
            if depth == 0:
                return pc, fail(state, i, LIMIT), sp, depth
            depth -= 1
        put(sp, 0, following)
        return code + INSTRUCTION * get(pc, 2), i, sp + 8, depth
    if op == RETURN:
        return get(sp, -1), i, sp - 8, depth + get(pc, 3)
    if op == MARK:
        put(sp, 0, i)
        return following, i, sp + 8, depth
    if op == REWIND:
        return following, get(sp, -1), sp, depth
    return following, i, sp - 8, depth  # UNMARK
