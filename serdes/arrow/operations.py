"""The vocabulary of programs: operations, how the machine stops, failures that are not in the bytes."""

WORDS = 8
"""Of an instruction: operation, column, operands."""
INSTRUCTION = 8 * WORDS

# Operations that read one value into a column; those of every schema first
STRING, INT64, INT32, INT_LONG, COPY_8, COPY_4, BOOL, SPAN, ENUM, DECIMAL, NULL, MARK = range(12)
# Operations that say what comes next
OPTION, LOOP, NEXT, JUMP, BRANCH, END = range(12, 18)
# Values of few schemas, and what is skipped
RARE = 18
SKIP_INT, SKIP_LONG, SKIP_BYTES, SKIP_SIZE, SKIP_INDEX = range(18, 23)
BINARY, CONST, TEXT, MEMBER, REAL, WIDEN, FAIL = range(23, 30)
# Rare ones that say what comes next
FLOW = 30
OPEN, ITEM, CLOSE, CALL, RETURN, KEEP, REWIND, DROP = range(30, 38)

FULL, REPEATED_KEY = 20, 21
"""Not failures of the row: a column is full; a map has a key twice."""
FRAME_SHORT, FRAME_MAGIC, FRAME_ID, REFUSED = 30, 31, 32, 33

DONE, NEEDS_ROOM, NEEDS_PROGRAM, NEEDS_REWRITE = range(4)
"""Why the machine stopped."""
