"""The vocabulary of programs: operations, how the machine stops, failures that are not in the bytes."""

WORDS = 8
"""Of an instruction: operation, column, operands."""
INSTRUCTION = 8 * WORDS

# Operations that append one value to a column, or skip one
NULL, STRUCT, MEMBER, BOOL, INT32, INT64, INT_LONG, SPAN, REAL, COPY = range(10)
WIDEN, STRING, BINARY, DECIMAL, ENUM, CONST, TEXT, CLOSE, FAIL = range(10, 19)
SKIP_INT, SKIP_LONG, SKIP_BYTES, SKIP_SIZE, SKIP_INDEX = range(19, 24)
# Operations that say what comes next
FLOW = 24
BRANCH, JUMP, NEXT, LOOP, END, CALL, RETURN, MARK, REWIND, UNMARK = range(24, 34)

FULL, REPEATED_KEY = 20, 21
"""Not failures of the row: a column is full; a map has a key twice."""
FRAME_SHORT, FRAME_MAGIC, FRAME_ID, REFUSED = 30, 31, 32, 33

DONE, NEEDS_ROOM, NEEDS_PROGRAM, NEEDS_REWRITE = range(4)
"""Why the machine stopped."""
