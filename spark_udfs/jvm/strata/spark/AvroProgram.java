package strata.spark;

import java.util.Set;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.DataType;

/** The program of an Avro schema. */
final class AvroProgram extends Program {
    private final Node node;
    private final RowBuffer row;
    private final Cursor cursor = new Cursor();

    /**
     * @param name the id or GUID of the writer schema
     * @param fields the positions of the fields to read; null for all
     * @param row the row to fill, of at least one field
     */
    AvroProgram(Object name, Schema writer, Schema reader, DataType column, Set<Integer> fields, RowBuffer row) {
        super(name);
        this.row = row;
        this.node = Compiler.compile(writer, reader, column, fields);
    }

    @Override
    void read(byte[] frame, byte[] header, int start) {
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
