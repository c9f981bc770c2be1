"""The vocabulary of programs: operations, how the machine stops, failures that are not in the bytes."""

WORDS = 8
"""Of an instruction: operation, column, operands."""
INSTRUCTION = 8 * WORDS

# Operations of every schema: they read one value into a column, or skip one
STRING, INT64, INT32, INT_LONG, COPY_8, COPY_4, BOOL, SPAN, ENUM, DECIMAL, NULL, MARK = range(12)
SKIP_BYTES, SKIP_LONG, SKIP_INT, SKIP_SIZE = range(12, 16)
# They say what comes next
OPTION, LOOP, NEXT, JUMP, BRANCH, END = range(16, 22)
# Values of few schemas
BINARY, CONST, TEXT, MEMBER, REAL, WIDEN, FAIL, SKIP_INDEX = range(22, 30)
# Rare ones that say what comes next
FLOW = 30
OPEN, ITEM, CLOSE, CALL, RETURN, KEEP, REWIND, DROP = range(30, 38)

FULL, REPEATED_KEY = 20, 21
"""Not failures of the row: a column is full; a map has a key twice."""
FRAME_SHORT, FRAME_MAGIC, FRAME_ID, REFUSED = 30, 31, 32, 33

DONE, NEEDS_ROOM, NEEDS_PROGRAM, NEEDS_REWRITE = range(4)
"""Why the machine stopped."""
