package strata.spark;

/**
 * What a simple value looks like in the bytes, as numbers: {@link FieldSource} makes code of it.
 *
 * @param most how many bytes it takes; of a number, how many at most
 * @param factor by which a number is multiplied; what a decimal stays below
 * @param mask what is kept of the next eight bytes, or of the number
 */
record Shortcut(Kind kind, int most, long factor, long mask) {
    /** What a value is: {@code OTHER} is not so simple. */
    enum Kind { OTHER, NUMBER, FIXED, TEXT, SYMBOL, DECIMAL, FLAG, SKIPPED_BYTES }

    private static final long BYTE = 0xFF;
    private static final long INT = 0xFFFFFFFFL;
    private static final long ALL = -1;

    static final Shortcut NONE = new Shortcut(Kind.OTHER, 0, 1, ALL);

    /**
     * A whole number, of up to 28 bits for an int and 56 for a long: no such number is out of range.
     *
     * @param factor up to a thousand: then the product is not out of range either
     */
    static Shortcut number(boolean narrow, boolean narrowOut, long factor) {
        boolean isSafe = factor == 1 || !narrowOut && factor > 0 && factor <= 1000;
        boolean isShort = narrow || factor == 1;
        return isSafe ? new Shortcut(Kind.NUMBER, narrow ? 4 : isShort ? 8 : 7, factor, narrowOut ? INT : ALL) : NONE;
    }

    /** What takes always so many bytes; a value takes four or eight. */
    static Shortcut fixed(int size) {
        return size == 0 ? NONE : new Shortcut(Kind.FIXED, size, 1, size == 4 ? INT : ALL);
    }

    static Shortcut flag() {
        return new Shortcut(Kind.FLAG, 1, 1, BYTE);
    }

    /** Text with its length before it. */
    static Shortcut text() {
        return new Shortcut(Kind.TEXT, 0, 1, ALL);
    }

    /** A symbol of {@link Scalars.EnumNode}. */
    static Shortcut symbol() {
        return new Shortcut(Kind.SYMBOL, 1, 1, ALL);
    }

    /** A decimal of up to 7 bytes, its length before it, that stays below a power of ten. */
    static Shortcut decimal(long bound) {
        return new Shortcut(Kind.DECIMAL, 0, bound, ALL);
    }

    /** Bytes or text that nobody asked for. */
    static Shortcut skippedBytes() {
        return new Shortcut(Kind.SKIPPED_BYTES, 0, 1, ALL);
    }

    /** The number in so many bytes behind the first one of a word. */
    static long decimal(long word, int size) {
        return Long.reverseBytes(word) << 8 >> 64 - 8 * size;
    }
}
