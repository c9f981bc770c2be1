package strata.spark.avro;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.spark.sql.types.DataType;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.frame.FrameHeader;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.row.Node;
import strata.spark.row.RowBuffer;
import strata.spark.schema.SchemaTexts;
import strata.spark.valid.PythonText;

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
    public void read(FrameHeader frame) {
        if (frame.size() > largest) {
            made = made == null ? whole.get() : made;
            made.read(frame);
            return;
        }
        try {
            read(frame, false);
        } catch (Damage first) {
            throw refuse(frame, first);
        }
    }

    private void read(FrameHeader frame, boolean tracing) {
        int start = frame.start();
        cursor.open(frame.bytes(), start, frame.end(), tracing);
        row.begin();
        row.putField(0, node.read(cursor, row, 0));
        if (cursor.at != cursor.end) {
            throw new Damage(
                    Damage.TRAILING_BYTES,
                    "the value ends after " + (cursor.at - start) + " of " + (cursor.end - start) + " bytes");
        }
    }

    /** Read again in the order of the bytes, to find the first error and its place. */
    private Refusal refuse(FrameHeader frame, Damage first) {
        Damage found = first;
        try {
            read(frame, true);
        } catch (Damage traced) {
            found = traced;
        }
        return new Refusal(found.letterReason(), name, found.message(cursor.at - frame.start()), found.field());
    }

    /**
     * Writes the defaults of a reader schema as Avro, by {@code serdes/avro/logical_types.py}: a default of a union is of
     * the first branch that it fits, and dates and times are numbers.
     */
    public static final class Defaults {
        private static final int MOST_VALUES = 10_000;
        private static final int LATIN = 0xFF;

        /** A default that fits its type, which may still be out of its range. */
        private interface Value {
            void write(BinaryEncoder out) throws IOException;
        }

        /** A default that is not valid. */
        private static final class Invalid extends RuntimeException {
            private static final long serialVersionUID = 1L;

            /** Whether no other branch of a union is tried. */
            private final boolean isFinal;

            Invalid(String message, boolean isFinal) {
                super(message, null, false, false);
                this.isFinal = isFinal;
            }

            static Invalid of(String expected, JsonNode written) {
                return new Invalid("expected " + expected + ", got " + PythonText.shortened(written), false);
            }
        }

        /** How many values the default may still have: defaults inside defaults can multiply. */
        private int left = MOST_VALUES;

        private Defaults() {}

        /** Return the reader schema of a plan, whose fields have their defaults as Avro: in old plans they come so. */
        public static Schema readerSchema(String written) {
            return SchemaTexts.isWritten(written)
                    ? encoded(SchemaTexts.withDefaults(SchemaTexts.texts(written)))
                    : SchemaTexts.read(written);
        }

        private static Schema encoded(Schema schema) {
            walk(schema, Collections.newSetFromMap(new IdentityHashMap<>()));
            return schema;
        }

        private static void walk(Schema schema, Set<Schema> seen) {
            if (!seen.add(schema)) {
                return;
            }
            switch (schema.getType()) {
                case ARRAY -> walk(schema.getElementType(), seen);
                case MAP -> walk(schema.getValueType(), seen);
                case UNION -> schema.getTypes().forEach(one -> walk(one, seen));
                case RECORD -> {
                    for (Schema.Field field : schema.getFields()) {
                        JsonNode written = SchemaTexts.defaultOf(field);
                        if (written != null) {
                            encode(field, written);
                        }
                        walk(field.schema(), seen);
                    }
                }
                default -> {}
            }
        }

        private static void encode(Schema.Field field, JsonNode written) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            try {
                Value value = new Defaults().value(field.schema(), written);
                value.write(EncoderFactory.get().directBinaryEncoder(out, null));
                field.addProp(Compiler.DEFAULT, HexFormat.of().formatHex(out.toByteArray()));
            } catch (Invalid invalid) {
                field.addProp(Compiler.BAD_DEFAULT, invalid.getMessage());
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        }

        private Value value(Schema type, JsonNode written) {
            if (--left < 0) {
                throw new Invalid("the default holds too many values", false);
            }
            Value value =
                    switch (type.getType()) {
                        case UNION -> union(type, written);
                        case RECORD -> written.isObject() ? record(type, written) : null;
                        case ARRAY -> written.isArray() ? array(type.getElementType(), written) : null;
                        case MAP -> written.isObject() ? map(type.getValueType(), written) : null;
                        case ENUM -> written.isTextual() ? symbol(type, written.asText()) : null;
                        case FIXED -> written.isTextual() ? fixed(type, written.asText()) : null;
                        case NULL -> written.isNull() ? out -> {} : null;
                        case BOOLEAN -> written.isBoolean() ? out -> out.writeBoolean(written.asBoolean()) : null;
                        case INT -> whole(written, Integer.SIZE);
                        case LONG -> whole(written, Long.SIZE);
                        case FLOAT -> real(written, true);
                        case DOUBLE -> real(written, false);
                        case STRING -> written.isTextual() ? out -> out.writeString(written.asText()) : null;
                        case BYTES -> written.isTextual() ? bytes(type, written.asText()) : null;
                    };
            if (value == null) {
                boolean isPlain = Compiler.isPrimitive(type);
                throw Invalid.of(isPlain ? type.getType().getName() : Compiler.describe(type), written);
            }
            return value;
        }

        private Value union(Schema union, JsonNode written) {
            for (int branch = 0; branch < union.getTypes().size(); branch++) {
                try {
                    int index = branch;
                    Value value = value(union.getTypes().get(index), written);
                    return out -> {
                        out.writeIndex(index);
                        value.write(out);
                    };
                } catch (Invalid other) {
                    if (other.isFinal) {
                        throw other;
                    }
                }
            }
            return null;
        }

        private Value record(Schema type, JsonNode written) {
            List<Value> values = new ArrayList<>();
            for (Schema.Field field : type.getFields()) {
                JsonNode own = written.has(field.name()) ? written.get(field.name()) : SchemaTexts.defaultOf(field);
                if (own == null) {
                    throw new Invalid("the default has no value for " + field.name(), false);
                }
                values.add(value(field.schema(), own));
            }
            return out -> {
                for (Value value : values) {
                    value.write(out);
                }
            };
        }

        private Value array(Schema items, JsonNode written) {
            List<Value> values = new ArrayList<>();
            written.forEach(item -> values.add(value(items, item)));
            return out -> {
                out.writeArrayStart();
                out.setItemCount(values.size());
                for (Value value : values) {
                    out.startItem();
                    value.write(out);
                }
                out.writeArrayEnd();
            };
        }

        private Value map(Schema type, JsonNode written) {
            Map<String, Value> values = new LinkedHashMap<>();
            written.properties().forEach(one -> values.put(one.getKey(), value(type, one.getValue())));
            return out -> {
                out.writeMapStart();
                out.setItemCount(values.size());
                for (Map.Entry<String, Value> one : values.entrySet()) {
                    out.startItem();
                    out.writeString(one.getKey());
                    one.getValue().write(out);
                }
                out.writeMapEnd();
            };
        }

        private static Value symbol(Schema type, String written) {
            return type.hasEnumSymbol(written) ? out -> out.writeEnum(type.getEnumOrdinal(written)) : null;
        }

        /** Return an int or a long; a number without a fraction may be written as any. */
        private static Value whole(JsonNode written, int bits) {
            if (!written.isNumber()) {
                return null;
            }
            BigInteger number;
            if (written.isIntegralNumber()) {
                number = written.bigIntegerValue();
            } else {
                double real = written.doubleValue();
                if (Double.isNaN(real)) {
                    throw new Invalid("cannot convert float NaN to integer", false);
                }
                if (Double.isInfinite(real)) {
                    throw new Invalid("cannot convert float infinity to integer", true);
                }
                if (real != Math.rint(real)) {
                    return null;
                }
                number = new BigDecimal(real).toBigInteger();
            }
            return out -> {
                if (number.bitLength() >= bits) {
                    throw new Invalid(Compiler.OUT_OF_RANGE, true);
                }
                out.writeLong(number.longValue());
            };
        }

        private static Value real(JsonNode written, boolean isFloat) {
            if (!written.isNumber()) {
                return null;
            }
            double number = written.doubleValue();
            if (written.isIntegralNumber() && Double.isInfinite(number)) {
                throw new Invalid("int too large to convert to float", true);
            }
            return isFloat ? out -> out.writeFloat((float) number) : out -> out.writeDouble(number);
        }

        private static Value bytes(Schema type, String written) {
            byte[] content = latin(written);
            BigInteger number = unscaled(type, content);
            return out -> out.writeBytes(number == null ? content : number.toByteArray());
        }

        private static Value fixed(Schema type, String written) {
            byte[] content = latin(written);
            if (content.length != type.getFixedSize()) {
                return null;
            }
            unscaled(type, content);
            return out -> out.writeFixed(content);
        }

        /** Return the number of a decimal, null for another type. */
        private static BigInteger unscaled(Schema type, byte[] content) {
            SparkTypes.Logical logical = SparkTypes.Logical.of(type);
            if (logical == null || !logical.name().equals("decimal")) {
                return null;
            }
            BigInteger number = content.length == 0 ? BigInteger.ZERO : new BigInteger(content);
            if (number.abs().compareTo(BigInteger.TEN.pow(logical.precision())) >= 0) {
                throw new Invalid("a decimal has more than " + logical.precision() + " digits", false);
            }
            return number;
        }

        /** Return a text of characters that stand for bytes; the errors are Python's. */
        private static byte[] latin(String written) {
            int[] points = written.codePoints().toArray();
            byte[] content = new byte[points.length];
            for (int start = 0; start < points.length; start++) {
                content[start] = (byte) points[start];
                if (points[start] > LATIN) {
                    int end = start;
                    while (end + 1 < points.length && points[end + 1] > LATIN) {
                        end++;
                    }
                    String what = start < end
                            ? "characters in position " + start + "-" + end
                            : "character '"
                                    + String.format(points[start] > 0xFFFF ? "\\U%08x" : "\\u%04x", points[start])
                                    + "' in position " + start;
                    throw new Invalid("'latin-1' codec can't encode " + what + ": ordinal not in range(256)", false);
                }
            }
            return content;
        }
    }
}
