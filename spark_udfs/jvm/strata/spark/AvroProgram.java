package strata.spark;

import java.util.Set;
import java.util.function.Supplier;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.DataType;

/** The program of an Avro schema, which may check fields that it does not build. */
final class AvroProgram extends Program {
    private final Node node;
    private final RowBuffer row;
    private final Cursor cursor = new Cursor();
    /** The size of the largest frame that this program reads; a check of a larger one might miss a limit. */
    private final long largest;
    /** Reads larger ones, by building all fields. */
    private final Supplier<AvroProgram> whole;
    private AvroProgram made;

    /**
     * @param name the id or GUID of the writer schema
     * @param fields the positions of the fields to build, while the others are checked; null for all
     * @param row the row to fill, of at least one field
     */
    AvroProgram(Object name, Schema writer, Schema reader, DataType column, Set<Integer> fields, RowBuffer row) {
        super(name);
        this.row = row;
        Compiler compiler = new Compiler(column, fields);
        this.node = compiler.compile(writer, reader);
        this.largest = fields == null ? Integer.MAX_VALUE : compiler.largestPayload();
        this.whole = () -> new AvroProgram(name, writer, reader, column, null, row);
    }

    @Override
    void read(byte[] frame, byte[] header, int start) {
        if (frame.length > largest) {
            made = made == null ? whole.get() : made;
            made.read(frame, header, start);
            return;
        }
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
