package strata.spark;

/**
 * The common form of a simple value in the bytes, as numbers, from which {@link FieldSource} generates code.
 *
 * @param most its size in bytes, or for a varint the maximum size
 * @param factor what a number is multiplied by, or the bound of a decimal
 * @param mask the bits to keep of the next eight bytes, or of the number
 */
record Shortcut(Kind kind, int most, long factor, long mask) {
    /** What a value is; {@code OTHER} is not simple. */
    enum Kind { OTHER, NUMBER, FIXED, TEXT, SYMBOL, DECIMAL, FLAG, SKIPPED_BYTES }

    private static final long BYTE = 0xFF;
    private static final long INT = 0xFFFFFFFFL;
    private static final long ALL = -1;

    static final Shortcut NONE = new Shortcut(Kind.OTHER, 0, 1, ALL);
    static final Shortcut FLAG = new Shortcut(Kind.FLAG, 1, 1, BYTE);
    /** Text after its length. */
    static final Shortcut TEXT = new Shortcut(Kind.TEXT, 0, 1, ALL);
    /** A symbol of {@link Scalars.EnumNode}. */
    static final Shortcut SYMBOL = new Shortcut(Kind.SYMBOL, 1, 1, ALL);
    /** Bytes or text that no column needs. */
    static final Shortcut SKIPPED_BYTES = new Shortcut(Kind.SKIPPED_BYTES, 0, 1, ALL);

    /**
     * An integer of up to 28 bits for an int and 56 for a long, which is never out of range.
     *
     * @param factor up to a thousand, so that the product is not out of range either
     */
    static Shortcut number(boolean narrow, boolean narrowOut, long factor) {
        boolean isSafe = factor == 1 || !narrowOut && factor > 0 && factor <= 1000;
        boolean isShort = narrow || factor == 1;
        return isSafe ? new Shortcut(Kind.NUMBER, narrow ? 4 : isShort ? 8 : 7, factor, narrowOut ? INT : ALL) : NONE;
    }

    /** A value of fixed size: four or eight bytes, or any number if it is skipped. */
    static Shortcut fixed(int size) {
        return size == 0 ? NONE : new Shortcut(Kind.FIXED, size, 1, size == 4 ? INT : ALL);
    }

    /** A decimal of up to 7 bytes after its length, below a power of ten. */
    static Shortcut decimal(long bound) {
        return new Shortcut(Kind.DECIMAL, 0, bound, ALL);
    }

    /** Return the number in {@code size} bytes after the first byte of a word. */
    static long decimal(long word, int size) {
        return Long.reverseBytes(word) << 8 >> 64 - 8 * size;
    }
}
