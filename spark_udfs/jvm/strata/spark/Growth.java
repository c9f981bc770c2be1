package strata.spark;

/**
 * An upper bound of the bytes that the rows of a program take, so that {@link Limits#OUTPUT} needs no count where values
 * are checked but not built.
 */
final class Growth {
    /** A slot, and the padding, null bit and count of what is in it. */
    private static final int VALUE = 32;

    /** What all values outside of arrays and maps take. */
    private long once;
    /** What an item of every array and map takes, with all that is in it. */
    private long each;
    private int containers;

    /** Note a value of any type. */
    void value() {
        add(VALUE);
    }

    /** Note so many bytes that a value takes at most, besides bytes of the payload. */
    void add(long bytes) {
        if (containers == 0) {
            once += bytes;
        } else {
            each += bytes;
        }
    }

    /** Note a row of so many fields. */
    void row(int size) {
        add(RowBuffer.nullBytes(size) + 8L * size);
    }

    void openContainer() {
        containers++;
        value();
    }

    void closeContainer() {
        containers--;
    }

    /** Note that values have no bound. */
    void exceed() {
        once = Limits.OUTPUT;
    }

    /** Return the bound for a payload of so many bytes: each of them may be an item, or a part of a text. */
    long of(long payload) {
        return once + each * (payload + Limits.WEIGHTLESS) + payload;
    }

    /** Return the size of the largest payload whose value is within {@link Limits#OUTPUT}; negative if none is. */
    long largestPayload() {
        return (Limits.OUTPUT - once - each * Limits.WEIGHTLESS) / (each + 1) - 1;
    }
}
