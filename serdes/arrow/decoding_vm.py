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

from strata.serdes.arrow import operations as op
from strata.serdes.arrow import vm_state as vm
from strata.serdes.arrow.decimals import decimal
from strata.serdes.arrow.memory import compiled, get, inlined, load_8, load_i32, put, store_8
from strata.serdes.arrow.numbers import fail, signed, varint_at
from strata.serdes.arrow.output import COLUMN, VALID, append_null, begin_list, end_list, mark, repeats, room_for_item
from strata.serdes.arrow.vm_values import boolean, copied, passed, rare, span, string, symbol, whole

__all__ = ["run"]

_NO_ID = 1 << 40


@compiled
def run(state: int) -> int:
    """Decode rows from ROW to LAST of the state; return why the VM stopped, with ROW set to the row where it did."""
    columns, offsets, present = get(state, vm.COLUMNS), get(state, vm.OFFSETS), get(state, vm.PRESENT)
    frames, base, last = get(state, vm.FRAMES), get(state, vm.BASE), get(state, vm.LAST)
    known, start = _NO_ID, 0
    for row in range(get(state, vm.ROW), last):
        if present != 0 and load_8(present + row - base) == 0:
            append_null(columns, row)
            continue
        i, end = frames + get(offsets, row - base), frames + get(offsets, row - base + 1)
        status = 0
        if end - i < 5 or load_8(i) != 0 or load_i32(i + 1) != known:
            status, start = entry(i, end, state)
            if status == op.NEEDS_PROGRAM:
                put(state, vm.ROW, row)
                return op.NEEDS_PROGRAM
            known = load_i32(i + 1) if status == 0 else _NO_ID
        if status == 0:
            store_8(get(columns, VALID) + row, 1)
            status = -execute(start, row, i + 5, end, state)
        if status > 0:
            if status in (op.FULL, op.REPEATED_KEY):
                put(state, vm.ROW, row)
                return op.NEEDS_ROOM if status == op.FULL else op.NEEDS_REWRITE
            append_null(columns, row)
            note(state, row, i, end, status)
    put(state, vm.ROW, last)
    return op.DONE


@compiled
def note(state: int, row: int, i: int, end: int, status: int) -> None:
    """Note why a row has no value: row, failure, schema id or -1, place, and a number with details."""
    reason = get(state, vm.REASONS) + 8 * vm.NOTE * get(state, vm.REFUSALS)
    put(state, vm.REFUSALS, get(state, vm.REFUSALS) + 1)
    put(reason, 0, row)
    put(reason, 1, status)
    put(reason, 2, get(state, vm.WHO))
    put(reason, 3, min(get(state, vm.PLACE), end) - (i + 5))
    put(reason, 4, get(state, vm.DETAIL))


@compiled
def entry(i: int, end: int, state: int) -> tuple[int, int]:
    """Read a frame's header; return a failure or 0, and the program's address. Set WHO to the schema id."""
    put(state, vm.WHO, -1)
    put(state, vm.PLACE, i + 5)
    if end - i < 5:
        return op.FRAME_SHORT, 0
    if load_8(i) != 0:
        put(state, vm.DETAIL, load_8(i))
        return op.FRAME_MAGIC, 0
    schema_id = (load_8(i + 1) << 24) | (load_8(i + 2) << 16) | (load_8(i + 3) << 8) | load_8(i + 4)
    if schema_id >= 0x80000000:
        put(state, vm.DETAIL, schema_id)
        return op.FRAME_ID, 0
    put(state, vm.WHO, schema_id)
    ids, mask = get(state, vm.IDS), get(state, vm.MASK)
    slot = (schema_id * vm.HASH >> 7) & mask
    while get(ids, slot) != schema_id:
        if get(ids, slot) < 0:
            return op.NEEDS_PROGRAM, 0
        slot = (slot + 1) & mask
    start = get(get(state, vm.STARTS), slot)
    if start < 0:
        put(state, vm.DETAIL, -1 - start)
        return op.REFUSED, 0
    return 0, get(state, vm.CODE) + op.INSTRUCTION * start


@inlined
def execute(pc: int, n: int, i: int, end: int, state: int) -> int:  # noqa: C901 - the table of operations
    """Run a program over one payload into row `n` of the columns; return 0, or the failure as a negative number."""
    columns, sp = get(state, vm.COLUMNS), get(state, vm.STACK)
    put(state, vm.DEPTH_LEFT, get(state, vm.MAX_DEPTH))
    put(state, vm.IDLE_LEFT, get(state, vm.MAX_IDLE))
    while True:
        code, c = get(pc, 0), columns + get(pc, 1)
        if code == op.STRING:
            i = string(c, n, i, end, state)
        elif code == op.INT64:
            i = whole(64, 8, c, n, i, end, state)
        elif code == op.INT32:
            i = whole(32, 4, c, n, i, end, state)
        elif code == op.INT_LONG:
            i = whole(32, 8, c, n, i, end, state)
        elif code == op.COPY_8:
            i = copied(8, c, n, i, end, state)
        elif code == op.COPY_4:
            i = copied(4, c, n, i, end, state)
        elif code == op.BOOL:
            i = boolean(c, n, i, end, state)
        elif code == op.SPAN:
            i = span(pc, c, n, i, end, state)
        elif code == op.ENUM:
            i = symbol(pc, c, n, i, end, state)
        elif code == op.DECIMAL:
            i = decimal(pc, c, n, i, end, state)
        elif code == op.SKIP_BYTES:
            i = passed(i, end, state)
        elif code == op.SKIP_LONG:
            _, i = varint_at(state, i, end, 64)
        elif code == op.SKIP_INT:
            _, i = varint_at(state, i, end, 32)
        elif code == op.SKIP_SIZE:
            i += get(pc, 2)
        elif code == op.NULL:
            append_null(c, n)
        elif code == op.MARK:
            mark(c, n)
        elif code == op.OPTION:
            pc, i = option(pc, c, n, i, end, state)
        elif code == op.NEXT:
            pc, n, i, sp = following(pc, c, n, i, end, sp, state)
        elif code == op.LOOP:
            pc, n, i, sp = begun(pc, c, n, i, sp, state)
        elif code == op.JUMP:
            pc += get(pc, 2)
        elif code == op.BRANCH:
            pc, i = branch(pc, i, end, state)
        elif code == op.END:
            return 0 if i == end else fail(state, i, op.TRAILING_BYTES if i < end else op.TRUNCATED)
        elif code < op.FLOW:
            i = rare(code, pc, c, n, i, end, state)
        else:
            pc, n, i, sp = jump(code, pc, c, n, i, sp, state)
        if i < 0:
            return i
        pc += op.INSTRUCTION


@inlined
def branch(pc: int, i: int, end: int, state: int) -> tuple[int, int]:
    """Read the index of a union; return the address of the instruction before those of its branch."""
    index, i = varint_at(state, i, end, 32)
    if i < 0:
        return pc, i
    if index & 1 or index >= get(pc, 2):
        return pc, fail(state, i, op.INVALID_INDEX)
    return get(state, vm.CODE) + op.INSTRUCTION * (get(get(state, vm.TABLE), get(pc, 3) + (index >> 1)) - 1), i


@inlined
def option(pc: int, c: int, n: int, i: int, end: int, state: int) -> tuple[int, int]:
    """Read the index of a union of null and one type; for null, skip the instructions of the value."""
    index, i = varint_at(state, i, end, 32)
    if i < 0:
        return pc, i
    if index & -3:
        return pc, fail(state, i, op.INVALID_INDEX)
    if index == get(pc, 3):
        append_null(c, n)
        return pc + get(pc, 2), i
    mark(c, n)
    return pc, i


@inlined
def begun(pc: int, c: int, n: int, i: int, sp: int, state: int) -> tuple[int, int, int, int]:
    """Begin a loop; its NEXT instruction runs next."""
    if sp + 16 > get(state, vm.STACK) + get(state, vm.STACK_SIZE):
        return pc, n, fail(state, i, op.LIMIT), sp
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
            return pc, n, -op.FULL, sp
        return pc + get(pc, 2), n, i, sp
    outside = get(sp, -2)
    if get(pc, 1) >= 0:
        if get(pc, 4) == 1:
            first = begin_list(c, outside) + 1
            if repeats(c + COLUMN, first, n + 1 - first, get(state, vm.SEED)):
                return pc, n, -op.REPEATED_KEY, sp
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
    count, i = varint_at(state, i, end, 64)
    if i < 0 or count == 0:
        return 0, i
    count = signed(count)
    if count < 0:
        size, after = varint_at(state, i, end, 64)
        if after < 0:
            return 0, fail(state, i, -after)
        if size & 1:
            return 0, fail(state, i, op.NEGATIVE_LENGTH)
        i = after
        count = -count  # -(-2**63) stays negative, and is rejected below
    if weight == 0:
        return (0, fail(state, i, op.TRUNCATED)) if count < 0 or count > end - i else (count, i)
    idle = get(state, vm.IDLE_LEFT)
    if count < 0 or count > idle or count * weight > idle:
        return 0, fail(state, i, op.LIMIT)
    put(state, vm.IDLE_LEFT, idle - count * weight)
    return count, i


@compiled
def jump(code: int, pc: int, c: int, n: int, i: int, sp: int, state: int) -> tuple[int, int, int, int]:
    """Run rare control flow: lists in defaults, calls, reading bytes again."""
    if code == op.CLOSE:
        end_list(c, get(sp, -1), n)
        return pc, get(sp, -1), i, sp - 8
    if code == op.ITEM:
        return pc, n + 1, i if room_for_item(state, c, n + 1) else -op.FULL, sp
    if code == op.RETURN:
        put(state, vm.DEPTH_LEFT, get(state, vm.DEPTH_LEFT) + get(pc, 3))
        return get(sp, -1), n, i, sp - 8
    if code == op.REWIND:
        return pc, n, get(sp, -1), sp
    if code == op.DROP:
        return pc, n, i, sp - 8
    if sp + 8 > get(state, vm.STACK) + get(state, vm.STACK_SIZE):
        return pc, n, fail(state, i, op.LIMIT), sp
    if code == op.CALL:
        depth = get(state, vm.DEPTH_LEFT)
        if get(pc, 3) > depth:
            return pc, n, fail(state, i, op.LIMIT), sp
        put(state, vm.DEPTH_LEFT, depth - get(pc, 3))
        put(sp, 0, pc)
        return get(state, vm.CODE) + op.INSTRUCTION * (get(pc, 2) - 1), n, i, sp + 8
    if code == op.OPEN:
        put(sp, 0, n)
        return pc, begin_list(c, n), i, sp + 8
    put(sp, 0, i)  # KEEP
    return pc, n, i, sp + 8
