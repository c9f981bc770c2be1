"""The encoding VM: runs bytecode that writes payloads from columns, the inverse of `decoding_vm.py`, in the same style.

A value is addressed by its column and its index `x`; a struct's children share its index, an array's items have their
own. `o` is the address of the next byte to write; a failure is negative. If the output is full, the VM stops, gets more
memory, and writes the row again.

Rules of this file: compiled code only; it raises nothing.
"""

from strata.serdes.arrow.memory import compiled, copy, get, load_8, load_64, load_i32, put, store_8

__all__ = ["COLUMN", "DATA", "ENTRIES", "VALID", "VALUES", "WIDTH", "WORDS", "run"]

# Entries of a column: the address of one byte per value that is 0 for null (0 if no value is null), of values or
# offsets, of bytes; the width of a value. A column is the address of its first entry.
VALID, VALUES, DATA, WIDTH = range(4)
ENTRIES_OF_COLUMN = 4
COLUMN = 8 * ENTRIES_OF_COLUMN

# Entries of `state`.
ROW, LAST, CODE, COLUMNS, TABLE, OUT, OUT_END, OUT_START, OFFSETS, STACK, HEADER, HEADER_SIZE, PLACE = range(13)
ENTRIES = 13

WORDS = 8
INSTRUCTION = 8 * WORDS

# Operations. An instruction is an operation, a column and operands.
NUMBER, COPY, BYTES, FIXED, DECIMAL, BOOLEAN, STRUCT, INDEX, SYMBOL, NULL = range(10)
FLOW = 10
NULLABLE, MEMBERS, LIST, NEXT, JUMP, END = range(10, 16)

DONE, NEEDS_ROOM, FAILED = range(3)

FULL, IS_NULL, NOT_NULL, OUT_OF_RANGE, BAD_SIZE, NO_SYMBOL, NO_MEMBER, MANY_MEMBERS = range(1, 9)


@compiled
def run(state: int) -> int:
    """Write rows from ROW to LAST; return why the VM stopped. For a failure, set PLACE to instruction and code."""
    out = get(state, OUT)
    for row in range(get(state, ROW), get(state, LAST)):
        put(state, ROW, row)
        size = get(state, HEADER_SIZE)
        if size > get(state, OUT_END) - out:
            return NEEDS_ROOM
        copy(get(state, HEADER), out, size)
        o = execute(row, out + size, state)
        if o == -FULL:
            return NEEDS_ROOM
        if o < 0:
            put(state, PLACE, -o)
            return FAILED
        out = o
        put(state, OUT, out)
        put(get(state, OFFSETS), row + 1, out - get(state, OUT_START))
    put(state, ROW, get(state, LAST))
    return DONE


@compiled
def failed(state: int, pc: int, why: int) -> int:
    """Return a failure and its place: the instruction number times 16, plus the code, negative."""
    return -(((pc - get(state, CODE)) // INSTRUCTION) * 16 + why)


@compiled
def is_there(c: int, x: int) -> bool:
    """Return whether a value is not null."""
    return get(c, VALID) == 0 or load_8(get(c, VALID) + x) != 0


@compiled
def write_long(number: int, o: int) -> int:
    """Write a number as a zigzag varint of at most ten bytes."""
    number = (number << 1) ^ (number >> 63)
    while number & -128 != 0:
        store_8(o, number & 127 | 128)
        number = (number >> 7) & 0x1FFFFFFFFFFFFFF
        o += 1
    store_8(o, number)
    return o + 1


@compiled
def execute(row: int, o: int, state: int) -> int:  # noqa: C901 - the table of operations
    """Write one payload; return the address after it, or a failure."""
    pc, columns, sp, x = get(state, CODE), get(state, COLUMNS), get(state, STACK), row
    code, end = pc, get(state, OUT_END) - 16
    while True:
        op, c = get(pc, 0), columns + COLUMN * get(pc, 1)
        if o > end:
            return -FULL
        if op < FLOW:
            o = value(op, pc, c, x, o, state)
            if o < 0:
                return o
            pc += INSTRUCTION
        elif op == NULLABLE:
            there = is_there(c, x)
            o = write_long(get(pc, 3) if there else get(pc, 2), o)
            pc = pc + INSTRUCTION if there else code + INSTRUCTION * get(pc, 4)
        elif op == LIST:
            if not is_there(c, x):
                return failed(state, pc, IS_NULL)
            first, stop = load_i32(get(c, VALUES) + 4 * x), load_i32(get(c, VALUES) + 4 * (x + 1))
            if stop > first:
                o = write_long(stop - first, o)
                put(sp, 0, x)
                put(sp, 1, stop)
                sp += 16
                x = first
                pc += INSTRUCTION
            else:
                store_8(o, 0)
                o += 1
                pc = code + INSTRUCTION * get(pc, 2)
        elif op == NEXT:
            x += 1
            if x < get(sp, -1):
                pc = code + INSTRUCTION * get(pc, 2)
            else:
                sp -= 16
                x = get(sp, 0)
                store_8(o, 0)
                o += 1
                pc += INSTRUCTION
        elif op == MEMBERS:
            target = member(pc, c, x, state)
            if target < 0:
                return target
            o = write_long(get(target, 1), o)
            pc = code + INSTRUCTION * get(target, 2)
        elif op == JUMP:
            pc = code + INSTRUCTION * get(pc, 2)
        else:
            return o


@compiled
def member(pc: int, c: int, x: int, state: int) -> int:
    """Return the address of the table entry (column, index, target) of the union branch that is set."""
    table, count = get(state, TABLE) + 8 * get(pc, 3), get(pc, 2)
    if not is_there(c, x):
        return table + 24 * count if get(pc, 4) == 1 else failed(state, pc, IS_NULL)
    entry = 0
    for number in range(count):
        if is_there(get(state, COLUMNS) + COLUMN * get(table, 3 * number), x):
            if entry != 0:
                return failed(state, pc, MANY_MEMBERS)
            entry = table + 24 * number
    return failed(state, pc, NO_MEMBER) if entry == 0 else entry


@compiled
def value(op: int, pc: int, c: int, x: int, o: int, state: int) -> int:
    """Write one value; return the address after it, or a failure."""
    if op == INDEX:
        return write_long(get(pc, 2), o)
    there = is_there(c, x)
    if op == NULL:
        return failed(state, pc, NOT_NULL) if there and get(c, WIDTH) != 0 else o
    if not there:
        return failed(state, pc, NO_SYMBOL if op == SYMBOL else IS_NULL)
    if op == STRUCT:
        return o
    if op in (BYTES, FIXED):
        return write_bytes(op, pc, c, x, o, state)
    address = get(c, VALUES) + x * get(c, WIDTH)
    if op == COPY:
        copy(address, o, get(c, WIDTH))
        return o + get(c, WIDTH)
    if op == BOOLEAN:
        store_8(o, load_8(address))
        return o + 1
    if op == DECIMAL:
        return decimal(pc, address, get(c, WIDTH), o, state)
    number = load_i32(address) if get(c, WIDTH) == 4 else load_64(address)
    if number < get(pc, 2) or number > get(pc, 3):
        return failed(state, pc, NO_SYMBOL if op == SYMBOL else OUT_OF_RANGE)
    return write_long(number, o)


@compiled
def write_bytes(op: int, pc: int, c: int, x: int, o: int, state: int) -> int:
    """Write bytes or a text: after their length, without it (operand 1), or of a fixed size (operand)."""
    start = load_i32(get(c, VALUES) + 4 * x)
    size = load_i32(get(c, VALUES) + 4 * (x + 1)) - start
    if size > get(state, OUT_END) - o - 16:
        return -FULL
    if op == FIXED:
        if size != get(pc, 2):
            return failed(state, pc, BAD_SIZE)
    elif get(pc, 2) == 0:
        o = write_long(size, o)
    copy(get(c, DATA) + start, o, size)
    return o + size


@compiled
def decimal(pc: int, address: int, width: int, o: int, state: int) -> int:
    """Write a little-endian number as the fewest big-endian bytes, or as many as a fixed has. Operands: size, bare."""
    sign = 255 if load_8(address + width - 1) > 127 else 0
    size = width
    while size > 1 and load_8(address + size - 1) == sign and load_8(address + size - 2) >> 7 == sign & 1:
        size -= 1
    whole = get(pc, 2)
    if whole < 0:
        whole = size
        if get(pc, 3) == 0:
            o = write_long(size, o)
    if size > whole:
        return failed(state, pc, OUT_OF_RANGE)
    if whole > get(state, OUT_END) - o - 16:
        return -FULL
    for at in range(whole):
        byte = load_8(address + whole - 1 - at) if whole - 1 - at < width else sign
        store_8(o + at, byte)
    return o + whole
