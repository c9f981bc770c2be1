"""Where the machine finds everything: the entries of `state`, by number.

PLACE, WHO, NEED, NEEDS_BYTES   out: where reading stopped; the column (its address) that is full, how many values or
                                bytes it needs; or, as WHO, the schema id in question
DETAIL                          out: a number that tells more of a failure
ROW                             in and out: the row to begin at, the row in question
LAST, BASE                      the row to stop at; the row of the first offset and of the first of PRESENT
FRAMES, OFFSETS, PRESENT        addresses of the frames' bytes, of where each begins, of a byte for each that says
                                whether it is one (0 when all are)
READABLE                        the address behind the last byte of all frames: so far may be read, if not believed
CODE, TABLE, POOL               addresses of all programs' instructions, of targets and symbols, of bytes
IDS, STARTS, MASK               a hash table of schema ids, -1 where there is none, and where the program of each
                                begins, or -1 - n for the refusal n; its size less one
COLUMNS                         the address of the columns, see `output.py`
STACK, STACK_SIZE, LIMBS        memory for what loops and calls remember, its bytes; memory for long numbers
REASONS, REFUSALS               memory for NOTE numbers for each row, see `machine.note`; out: how many were refused
SEED, MAX_DEPTH, MAX_IDLE       for hashing; limits
DEPTH_LEFT, IDLE_LEFT           what is left of the limits in the row under way
"""

PLACE, WHO, NEED, NEEDS_BYTES, DETAIL, ROW, LAST, BASE, FRAMES, OFFSETS, PRESENT, CODE, TABLE, POOL = range(14)
IDS, STARTS, MASK, COLUMNS, STACK, STACK_SIZE, LIMBS, REASONS, SEED, MAX_DEPTH, MAX_IDLE = range(14, 25)
READABLE, DEPTH_LEFT, IDLE_LEFT, REFUSALS = range(25, 29)
ENTRIES = 29
NOTE = 5

HASH = 0x9E3779B1
"""Spreads schema ids over the table of them."""
LIMB_COUNT = 40
"""Of 32 bits each, in 64: enough for what a decimal is while it is moved to another scale."""
