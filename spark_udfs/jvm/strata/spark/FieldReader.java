package strata.spark;

/** Code generated for the fields of one record: {@link FieldSource} writes it, {@link FieldReaders} caches it. */
abstract class FieldReader {
    /** The least size of a frame, so that its last bytes can be read as a word. */
    static final int LEAST = Long.BYTES;

    /**
     * Read all fields, except defaults, into a row that has just begun.
     *
     * @param in of a frame of at least {@link #LEAST} bytes; it must not be tracing
     * @throws Damage if the bytes are not such a record
     */
    abstract void read(Cursor in, RowBuffer out, int row);

    /** Drop a value that no column needs. */
    static void ignore(long word) {
        // Nothing.
    }
}
