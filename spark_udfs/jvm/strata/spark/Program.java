package strata.spark;

import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.DataType;

/**
 * Payloads of one writer schema as rows of one column, of the reader schema's type.
 *
 * <p>Not safe for several threads, and a row is good until the next one is read.
 */
final class Program {
    private final Node node;
    private final UnsafeRowWriter row;
    private final Cursor cursor = new Cursor(Limits.DEFAULT);

    /**
     * @param row the row to fill, of at least one field
     */
    Program(Schema writer, Schema reader, DataType column, UnsafeRowWriter row) {
        this.row = row;
        this.node = Compiler.compile(writer, reader, column, row);
    }

    /**
     * Read a frame's payload into the row's first field.
     *
     * @param schema the id or GUID in the frame, for the refusal
     * @throws Refusal when the payload is damaged
     */
    void read(byte[] frame, int start, Object schema) {
        try {
            read(frame, start, false);
        } catch (Damage first) {
            throw refuse(frame, start, schema, first);
        }
    }

    private void read(byte[] frame, int start, boolean tracing) {
        cursor.open(frame, start, tracing);
        row.reset();
        row.zeroOutNullBytes();
        node.read(cursor, row, 0);
        if (cursor.at != cursor.end) {
            throw new Damage(Damage.TRAILING_BYTES,
                "the value ends after " + (cursor.at - start) + " of " + (cursor.end - start) + " bytes");
        }
    }

    /** Read again in the order of the bytes, for the first thing that is wrong and its place. */
    private Refusal refuse(byte[] frame, int start, Object schema, Damage first) {
        Damage found = first;
        try {
            read(frame, start, true);
        } catch (Damage traced) {
            found = traced;
        }
        return new Refusal(found.told(), schema, found.sentence(cursor.at - start));
    }

    UnsafeRow row() {
        return row.getRow();
    }
}
