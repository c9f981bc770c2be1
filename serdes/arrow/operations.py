"""The instruction set of the decoding VM: operations, failures and stop codes."""

WORDS = 8
"""Numbers of one instruction: operation, column, operands."""
INSTRUCTION = 8 * WORDS

# Common operations: read one value into a column, or skip one.
STRING, INT64, INT32, INT_LONG, COPY_8, COPY_4, BOOL, SPAN, ENUM, DECIMAL, NULL, MARK = range(12)
SKIP_BYTES, SKIP_LONG, SKIP_INT, SKIP_SIZE = range(12, 16)
# Common control flow.
OPTION, LOOP, NEXT, JUMP, BRANCH, END = range(16, 22)
# Rare operations on values.
BINARY, CONST, TEXT, MEMBER, REAL, WIDEN, FAIL, SKIP_INDEX = range(22, 30)
# Rare control flow.
FLOW = 30
OPEN, ITEM, CLOSE, CALL, RETURN, KEEP, REWIND, DROP = range(30, 38)

TRUNCATED, TRAILING_BYTES, INVALID_UTF8, NEGATIVE_LENGTH, INVALID_INDEX = range(1, 6)
INVALID_BOOLEAN, OUT_OF_RANGE, LIMIT, RESOLUTION = range(6, 10)
"""Failures of a row that are in its bytes, or in the schemas."""
FULL, REPEATED_KEY = 20, 21
"""Not failures of the row: a column is full; a map has a duplicate key."""
FRAME_SHORT, FRAME_MAGIC, FRAME_ID, REFUSED = 30, 31, 32, 33

DONE, NEEDS_ROOM, NEEDS_PROGRAM, NEEDS_REWRITE = range(4)
"""Why the VM stopped."""
