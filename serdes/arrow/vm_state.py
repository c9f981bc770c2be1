"""The state of the decoding VM: the entries of the array `state`, by number.

PLACE, WHO, NEED, NEEDS_BYTES   out: the address where reading stopped; the address of the full column, and how many
                                values or bytes it needs; or, in WHO, the schema id concerned
DETAIL                          out: a number with details of a failure
ROW                             in and out: the first row to decode, the row where the VM stopped
LAST, BASE                      the row to stop at; the row of the first offset and of the first entry of PRESENT
FRAMES, OFFSETS, PRESENT        addresses of the bytes of the frames, of their offsets, and of one byte per frame, 0
                                for a null frame (the address is 0 if no frame is null)
READABLE                        the address after the last byte of all frames: compiled code may read up to here, but
                                must not use bytes beyond the end of its frame
CODE, TABLE, POOL               addresses of the bytecode of all programs, of targets and symbols, of constant bytes
IDS, STARTS, MASK               a hash table of schema ids, -1 for an empty slot; the start of the program of each,
                                or -1 - n for refusal n; the size of the table less one
COLUMNS                         the address of the columns, see `output.py`
STACK, STACK_SIZE, LIMBS        memory for loops and calls, and its size in bytes; memory for long numbers
REASONS, REFUSALS               memory for NOTE numbers per refused row, see `machine.note`; out: the number of
                                refused rows
SEED, MAX_DEPTH, MAX_IDLE       the seed of hashes; limits
DEPTH_LEFT, IDLE_LEFT           what is left of the limits in the current row
"""

PLACE, WHO, NEED, NEEDS_BYTES, DETAIL, ROW, LAST, BASE, FRAMES, OFFSETS, PRESENT, CODE, TABLE, POOL = range(14)
IDS, STARTS, MASK, COLUMNS, STACK, STACK_SIZE, LIMBS, REASONS, SEED, MAX_DEPTH, MAX_IDLE = range(14, 25)
READABLE, DEPTH_LEFT, IDLE_LEFT, REFUSALS = range(25, 29)
ENTRIES = 29
NOTE = 5

HASH = 0x9E3779B1
"""Multiplier that spreads schema ids over their hash table."""
LIMB_COUNT = 40
"""Limbs of 32 bits, in 64-bit entries: enough for a decimal while its scale changes."""
