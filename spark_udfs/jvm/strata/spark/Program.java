package strata.spark;

import org.apache.avro.Schema;
import org.apache.spark.sql.types.DataType;

/**
 * A reader of payloads of one writer schema into rows of one column, of the reader schema's type.
 *
 * <p>Not thread-safe. A row is valid until the next one is read.
 */
final class Program {
    private final Object name;
    private final Node node;
    private final RowBuffer row;
    private final Cursor cursor = new Cursor();

    /**
     * @param name the id or GUID of the writer schema
     * @param row the row to fill, of at least one field
     */
    Program(Object name, Schema writer, Schema reader, DataType column, RowBuffer row) {
        this.name = name;
        this.row = row;
        this.node = Compiler.compile(writer, reader, column);
    }

    boolean isNamedBy(FrameHeader header) {
        return header.isNamed(name);
    }

    /**
     * Read a frame's payload into the row's first field.
     *
     * @throws Refusal if the payload is damaged
     */
    void read(byte[] frame, int start) {
        try {
            read(frame, start, false);
        } catch (Damage first) {
            throw refuse(frame, start, first);
        }
    }

    private void read(byte[] frame, int start, boolean tracing) {
        cursor.open(frame, start, tracing);
        row.begin();
        row.putField(0, node.read(cursor, row, 0));
        if (cursor.at != cursor.end) {
            throw new Damage(Damage.TRAILING_BYTES,
                "the value ends after " + (cursor.at - start) + " of " + (cursor.end - start) + " bytes");
        }
    }

    /** Read again in the order of the bytes, to find the first error and its place. */
    private Refusal refuse(byte[] frame, int start, Damage first) {
        Damage found = first;
        try {
            read(frame, start, true);
        } catch (Damage traced) {
            found = traced;
        }
        return new Refusal(found.letterReason(), name, found.message(cursor.at - start));
    }
}
