package strata.spark;

/** Code made for the fields of one record: {@link FieldSource} writes it, {@link FieldReaders} keeps it. */
abstract class FieldReader {
    /** How long a payload and what stands before it must be, so that its last bytes can be read as a word. */
    static final int LEAST = Long.BYTES;

    /**
     * Read all fields, but for defaults, into a row that has just begun.
     *
     * @param in of a frame of at least {@link #LEAST} bytes; it must not be tracing
     * @throws Damage when the bytes are no such record
     */
    abstract void read(Cursor in, RowBuffer out, int row);

    /** What becomes of a value that nobody asked for. */
    static void ignore(long word) {
        // Nothing.
    }
}
