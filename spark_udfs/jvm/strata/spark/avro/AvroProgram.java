package strata.spark.avro;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.util.Collections;
import java.util.HexFormat;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.internal.Accessor;
import org.apache.spark.sql.types.DataType;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.row.Node;
import strata.spark.row.RowBuffer;
import strata.spark.schema.SchemaTexts;

/** The program of an Avro schema, which may check fields that it does not build. */
public final class AvroProgram extends Program {
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
    public AvroProgram(Object name, Schema writer, Schema reader, DataType column, Set<Integer> fields, RowBuffer row) {
        super(name);
        this.row = row;
        Compiler compiler = new Compiler(column, fields);
        this.node = compiler.compile(writer, reader);
        this.largest = fields == null ? Integer.MAX_VALUE : compiler.largestPayload();
        this.whole = () -> new AvroProgram(name, writer, reader, column, null, row);
    }

    @Override
    public void read(byte[] frame, byte[] header, int start) {
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
            throw new Damage(
                    Damage.TRAILING_BYTES,
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
        return new Refusal(found.letterReason(), name, found.message(cursor.at - start), found.field());
    }

    /** Writes the defaults of a reader schema as Avro, as the driver in Python does (reader_schema.py). */
    public static final class Defaults {
        private final Set<Schema> seen = Collections.newSetFromMap(new IdentityHashMap<>());

        private Defaults() {}

        /** Return the reader schema of a plan: the driver in Python has encoded its defaults, or they are encoded now. */
        public static Schema readerSchema(String written) {
            Schema schema = SchemaTexts.read(written);
            return SchemaTexts.areSeveral(written) ? encoded(schema) : schema;
        }

        /** Return the schema, whose fields now have their defaults as Avro. */
        public static Schema encoded(Schema schema) {
            new Defaults().walk(schema);
            return schema;
        }

        private void walk(Schema schema) {
            if (!seen.add(schema)) {
                return;
            }
            switch (schema.getType()) {
                case ARRAY -> walk(schema.getElementType());
                case MAP -> walk(schema.getValueType());
                case UNION -> schema.getTypes().forEach(this::walk);
                case RECORD -> {
                    for (Schema.Field field : schema.getFields()) {
                        encode(field);
                        walk(field.schema());
                    }
                }
                default -> {}
            }
        }

        private static void encode(Schema.Field field) {
            JsonNode value = Accessor.defaultValue(field);
            if (value == null) {
                return;
            }
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            try {
                BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
                Accessor.encode(encoder, field.schema(), value);
                field.addProp(Compiler.DEFAULT, HexFormat.of().formatHex(out.toByteArray()));
            } catch (Exception notValid) { // the encoder rejects a default with many kinds of exceptions
                field.addProp(Compiler.BAD_DEFAULT, String.valueOf(notValid.getMessage()));
            }
        }
    }
}
