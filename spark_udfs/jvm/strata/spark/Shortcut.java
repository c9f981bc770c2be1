package strata.spark;

/**
 * What a simple value looks like in the bytes, as numbers: {@link RecordNode} reads it without a call.
 *
 * @param kind one of those below
 * @param most how many bytes it takes; of a number, how many at most
 * @param factor by which a number is multiplied; what a decimal stays below
 * @param mask what is kept of the next eight bytes, or of the number
 */
record Shortcut(int kind, int most, long factor, long mask) {
    /** A value that is not so simple. */
    static final int OTHER = 0;
    static final int NUMBER = 1;
    static final int FIXED = 2;
    static final int TEXT = 3;
    static final int SYMBOL = 4;
    static final int DECIMAL = 5;
    static final int FLAG = 6;
    static final int SKIPPED_BYTES = 7;

    private static final long BYTE = 0xFF;
    private static final long INT = 0xFFFFFFFFL;
    private static final long ALL = -1;

    static final Shortcut NONE = new Shortcut(OTHER, 0, 1, ALL);

    /**
     * A whole number, of up to 28 bits for an int and 56 for a long: no such number is out of range.
     *
     * @param factor up to a thousand: then the product is not out of range either
     */
    static Shortcut number(boolean narrow, boolean narrowOut, long factor) {
        boolean isSafe = factor == 1 || !narrowOut && factor > 0 && factor <= 1000;
        boolean isShort = narrow || factor == 1;
        return isSafe ? new Shortcut(NUMBER, narrow ? 4 : isShort ? 8 : 7, factor, narrowOut ? INT : ALL) : NONE;
    }

    /** What takes always so many bytes; a value takes four or eight. */
    static Shortcut fixed(int size) {
        return size == 0 ? NONE : new Shortcut(FIXED, size, 1, size == 4 ? INT : ALL);
    }

    static Shortcut flag() {
        return new Shortcut(FLAG, 1, 1, BYTE);
    }

    /** Text with its length before it. */
    static Shortcut text() {
        return new Shortcut(TEXT, 0, 1, ALL);
    }

    /** A symbol of {@link Scalars.EnumNode}. */
    static Shortcut symbol() {
        return new Shortcut(SYMBOL, 1, 1, ALL);
    }

    /** A decimal of up to 7 bytes, its length before it, that stays below a power of ten. */
    static Shortcut decimal(long bound) {
        return new Shortcut(DECIMAL, 0, bound, ALL);
    }

    /** Bytes or text that nobody asked for. */
    static Shortcut skippedBytes() {
        return new Shortcut(SKIPPED_BYTES, 0, 1, ALL);
    }

    /** The length or index in the first byte of a word, less than 0 when it takes more than that byte or is none. */
    static int length(long word) {
        return (word & 0x81) == 0 ? (int) (word & BYTE) >> 1 : -1;
    }

    /** How many bytes a value of one of the other kinds takes; more than there can be if it is unsound. */
    static int width(Step step, long next) {
        int length = length(next);
        boolean isSound = switch (step.kind) {
            case FLAG -> (next & 0xFE) == 0;
            case DECIMAL -> length > 0 && length < Long.BYTES && Math.abs(decimal(next, length)) < step.factor;
            case SKIPPED_BYTES -> length >= 0;
            default -> false;
        };
        return !isSound ? Integer.MAX_VALUE : step.kind == FLAG ? 1 : 1 + length;
    }

    /** The number in so many bytes behind the first one of a word. */
    static long decimal(long word, int size) {
        return Long.reverseBytes(word) << 8 >> 64 - 8 * size;
    }
}
