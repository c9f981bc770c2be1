package strata.spark.proto;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.proto.EncodeProto.EncodeMessages;
import strata.spark.schema.Columns;
import strata.spark.schema.Columns.Nesting;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.ProtoSchema.Field;
import strata.spark.schema.ProtoSchema.Message;
import strata.spark.schema.ProtoSchema.ProtoType;

/**
 * Makes the columns of a message, from the descriptors of a registry: what {@code protobuf_types.py} and
 * {@code protobuf_jvm.py} do for {@code decode}.
 */
public final class ProtoColumns {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TIMESTAMP = "timestamp";
    private static final String WRAPPER = "wrapper";
    private static final List<String> JSON_TEXTS =
            List.of("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue");

    /** The slot of a field that is not a column. */
    static final int UNREAD = -1;

    private final ObjectNode messages = JSON.createObjectNode();
    private final Nesting nesting = new Nesting("message");

    private ProtoColumns() {}

    /**
     * Return the columns of a message.
     *
     * @param schema the reader schema, with the files that it refers to
     * @param name the full name of the message; null for the first
     * @param columns the fields to read, in this order; null for all
     * @throws IllegalArgumentException if there is no such message or field, or a part of it has no Spark type
     * @throws UnusableSchema if the JVM does not decode a part of it
     */
    public static Columns of(ProtoSchema schema, String name, List<String> columns) {
        Message message = name == null ? schema.at(List.of(0)) : schema.named(name);
        if (message == null) {
            String known = schema.top().stream().map(one -> one.name).collect(Collectors.joining(", "));
            throw new IllegalArgumentException(
                    name == null
                            ? "the schema has no message"
                            : "no message " + name + "; the reader schema has " + known);
        }
        List<Field> ordered = byNumber(message.fields.values());
        List<String> known = ordered.stream().map(one -> one.name).toList();
        List<String> names =
                columns == null ? known : Columns.chosen(known, columns, "the reader schema " + message.name);
        Map<String, Field> byName =
                message.fields.values().stream().collect(Collectors.toMap(one -> one.name, one -> one));
        List<Field> chosen = names.stream().map(byName::get).toList();
        ProtoColumns made = new ProtoColumns();
        DataType type = made.struct(message, "", chosen);
        made.add(message, columns == null ? List.copyOf(message.fields.values()) : chosen, names);
        String reader = JSON.createObjectNode()
                .put("message", message.name)
                .set("messages", made.messages)
                .toString();
        return new Columns(reader, type);
    }

    private static List<Field> byNumber(Collection<Field> fields) {
        return fields.stream()
                .sorted(Comparator.comparingInt(one -> one.number))
                .toList();
    }

    private static boolean hasPresence(Message owner, Field field) {
        boolean knowsAbsence = isMessage(field) || field.oneof >= 0 || !owner.syntax.equals(ProtoSchema.PROTO3);
        return knowsAbsence && !field.isRepeated && field.defaultValue == null;
    }

    private static boolean isMessage(Field field) {
        return field.type.isMessage();
    }

    private static String kind(Field field) {
        return EncodeMessages.KINDS.getOrDefault(field.message.name, "");
    }

    // Types

    private StructType struct(Message message, String path, List<Field> fields) {
        return nesting.inside(message.name, path, " " + message.name, () -> {
            List<StructField> made = new ArrayList<>();
            for (Field field : fields) {
                DataType type = type(field, Nesting.within(path, field.name));
                made.add(DataTypes.createStructField(field.name, type, hasPresence(message, field)));
            }
            return new StructType(made.toArray(StructField[]::new));
        });
    }

    private DataType type(Field field, String path) {
        nesting.count(path);
        if (field.isMap()) {
            Field value = field.message.fields.get(2);
            return DataTypes.createMapType(
                    single(field.message.fields.get(1), path), single(value, path + "{}"), false);
        }
        return field.isRepeated ? DataTypes.createArrayType(single(field, path + "[]"), false) : single(field, path);
    }

    /** Return the type of one value of a field. */
    private DataType single(Field field, String path) {
        if (!isMessage(field)) {
            return scalar(field, path);
        }
        if (field.message == null) {
            throw unknown(field, path);
        }
        return switch (kind(field)) {
            case TIMESTAMP -> DataTypes.TimestampType;
            case "duration" -> DataTypes.createDayTimeIntervalType();
            case WRAPPER -> scalar(field.message.fields.get(1), path);
            default -> JSON_TEXTS.contains(field.message.name)
                    ? DataTypes.StringType
                    : struct(field.message, path, byNumber(field.message.fields.values()));
        };
    }

    private static DataType scalar(Field field, String path) {
        if (field.type.column == null) {
            throw unknown(field, path);
        }
        return field.type.column;
    }

    private static UnusableSchema unknown(Field field, String path) {
        return new UnusableSchema("the registry has no type " + field.typeName + " of " + path);
    }

    // Messages

    private void add(Message message, List<Field> fields, List<String> slots) {
        if (message.syntax.equals(ProtoSchema.EDITIONS)) {
            throw onlyInPython("an edition of Protobuf (" + message.name + ")");
        }
        ArrayNode written = messages.putArray(message.name);
        for (Field field : fields) {
            written.add(field(message, field).put("slot", slots.indexOf(field.name)));
        }
        for (Field field : message.fields.values()) {
            boolean unsets = !fields.contains(field) && fields.stream().anyMatch(other -> isRival(field, other));
            if (unsets) {
                written.add(unread(field));
            }
        }
    }

    private static boolean isRival(Field field, Field other) {
        return field != other && field.oneof >= 0 && field.oneof == other.oneof;
    }

    /** Return a member of a oneof that is not a column, but unsets those that are. */
    private static ObjectNode unread(Field field) {
        ObjectNode written = JSON.createObjectNode();
        written.put("name", field.name).put("number", field.number).put("type", field.type.ordinal());
        written.put("label", "one").put("slot", UNREAD).put("oneof", field.oneof);
        if (field.numbers != null && !field.numbers.syntax().equals(ProtoSchema.PROTO3)) {
            ObjectNode names = written.putObject("names"); // other numbers are unknown fields
            field.numbers.values().forEach((name, number) -> names.put(number.toString(), name));
        }
        return written;
    }

    private ObjectNode field(Message owner, Field field) {
        String full = owner.name + "." + field.name;
        if (field.type == ProtoType.GROUP) {
            throw onlyInPython("the group " + full);
        }
        ObjectNode written = JSON.createObjectNode();
        written.put("name", field.name).put("number", field.number).put("type", field.type.ordinal());
        written.put("label", field.isMap() ? "map" : field.isRepeated ? "many" : "one");
        written.put("presence", hasPresence(owner, field));
        if (field.type == ProtoType.STRING) {
            written.put("text", owner.syntax.equals(ProtoSchema.PROTO3));
        }
        if (field.type == ProtoType.ENUM) {
            addNames(field, full, written.putObject("names"));
        }
        written.put("zero", HexFormat.of().formatHex(ProtoDefaults.of(field, full)));
        if (field.type == ProtoType.MESSAGE) {
            if (JSON_TEXTS.contains(field.message.name)) {
                throw onlyInPython("the " + field.message.name + " " + full);
            }
            written.put("message", field.message.name).put("kind", kind(field));
            addInside(field.message);
        }
        if (owner.fields.values().stream().anyMatch(other -> isRival(field, other))) {
            written.put("oneof", field.oneof);
        }
        return written;
    }

    private void addInside(Message message) {
        if (!messages.has(message.name)) {
            List<String> slots = byNumber(message.fields.values()).stream()
                    .map(one -> one.name)
                    .toList();
            add(message, List.copyOf(message.fields.values()), slots);
        }
    }

    private static void addNames(Field field, String full, ObjectNode written) {
        if (field.numbers == null) {
            throw unknown(field, full);
        }
        if (field.numbers.syntax().equals(ProtoSchema.EDITIONS)) {
            throw onlyInPython("an edition of Protobuf (" + full + ")");
        }
        if (!field.numbers.syntax().equals(ProtoSchema.PROTO3)) { // unknown numbers of it are unknown fields
            throw onlyInPython("the closed enum " + field.typeName);
        }
        Map<Integer, String> names = new HashMap<>();
        field.numbers.values().forEach((name, number) -> {
            if (names.putIfAbsent(number, name) == null) {
                written.put(number.toString(), name);
            }
        });
    }

    private static UnusableSchema onlyInPython(String part) {
        return new UnusableSchema("SQL does not decode " + part
                + "; make the column by strata.spark_udfs.decode, which decodes it in Python workers");
    }

    /** The values of fields that are absent, in the wire format without a tag: zero, or the default that proto2 gives. */
    static final class ProtoDefaults {
        private static final Map<String, Double> NAMED = Map.of(
                "inf",
                Double.POSITIVE_INFINITY,
                "-inf",
                Double.NEGATIVE_INFINITY,
                "nan",
                Double.NaN,
                "-nan",
                Double.NaN);
        private static final Map<Character, Character> ESCAPES =
                Map.of('a', '\u0007', 'b', '\b', 'f', '\f', 'n', '\n', 'r', '\r', 't', '\t', 'v', '\u000b');

        private ProtoDefaults() {}

        /**
         * Return the value of a field that is absent.
         *
         * @param full the full name of the field, for the error
         * @throws UnusableSchema if its default is not a value of its type
         */
        public static byte[] of(ProtoSchema.Field field, String full) {
            boolean isZero = field.defaultValue == null || field.isRepeated || field.message != null;
            try {
                return written(field, isZero ? null : field.defaultValue);
            } catch (NumberFormatException invalid) {
                throw new UnusableSchema("the default of " + full + " is " + field.defaultValue);
            }
        }

        private static byte[] written(ProtoSchema.Field field, String value) {
            return switch (field.type) {
                case DOUBLE -> fixed(Double.doubleToRawLongBits(number(value)), 8);
                case FLOAT -> fixed(Float.floatToRawIntBits((float) number(value)), 4);
                case FIXED32, SFIXED32 -> fixed(integer(value), 4);
                case FIXED64, SFIXED64 -> fixed(integer(value), 8);
                case SINT32, SINT64 -> varint(integer(value) << 1 ^ integer(value) >> 63);
                case STRING -> sized(value == null ? new byte[0] : value.getBytes(StandardCharsets.UTF_8));
                case BYTES -> sized(value == null ? new byte[0] : unescaped(value));
                case BOOL -> varint("true".equals(value) ? 1 : 0);
                case ENUM -> varint(value == null ? 0 : field.numbers.values().getOrDefault(value, 0));
                default -> varint(integer(value));
            };
        }

        private static double number(String value) {
            Double named = value == null ? Double.valueOf(0) : NAMED.get(value);
            return named == null ? Double.parseDouble(value) : named;
        }

        /** Return an integer, which may be written as in C. */
        private static long integer(String value) {
            if (value == null) {
                return 0;
            }
            String digits = value.startsWith("-") ? value.substring(1) : value;
            BigInteger size = digits.startsWith("0x") || digits.startsWith("0X")
                    ? new BigInteger(digits.substring(2), 16)
                    : new BigInteger(digits, digits.startsWith("0") ? 8 : 10);
            return (value.startsWith("-") ? size.negate() : size).longValue();
        }

        private static byte[] fixed(long bits, int width) {
            byte[] all = ByteBuffer.allocate(8)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putLong(bits)
                    .array();
            return Arrays.copyOf(all, width);
        }

        private static byte[] sized(byte[] content) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            out.writeBytes(varint(content.length));
            out.writeBytes(content);
            return out.toByteArray();
        }

        private static byte[] varint(long number) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            long left = number;
            for (; (left & ~0x7FL) != 0; left >>>= 7) {
                out.write((int) left & 0x7F | 0x80);
            }
            out.write((int) left);
            return out.toByteArray();
        }

        /** Return bytes that a descriptor has with the escapes of C. */
        private static byte[] unescaped(String text) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            for (int at = 0; at < bytes.length; at++) {
                if (bytes[at] != '\\' || at + 1 == bytes.length) {
                    out.write(bytes[at]);
                    continue;
                }
                char kind = (char) bytes[++at];
                boolean isHex = kind == 'x' || kind == 'X';
                if (isHex || Character.digit(kind, 8) >= 0) {
                    int start = isHex ? at + 1 : at;
                    int end = start;
                    int radix = isHex ? 16 : 8;
                    while (end < bytes.length
                            && end < start + (isHex ? 2 : 3)
                            && Character.digit(bytes[end], radix) >= 0) {
                        end++;
                    }
                    String digits = new String(bytes, start, end - start, StandardCharsets.US_ASCII);
                    out.write(Integer.parseInt(digits, radix));
                    at = end - 1;
                } else {
                    out.write(ESCAPES.getOrDefault(kind, kind));
                }
            }
            return out.toByteArray();
        }
    }
}
