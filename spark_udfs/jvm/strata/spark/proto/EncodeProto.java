package strata.spark.proto;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.proto.EncodeProtoValue.EncodeProtoFields;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.ProtoSchema.ProtoType;
import strata.spark.write.EncodeOutput.EncodeBackwards;
import strata.spark.write.EncodeOutput.EncodeFailure;
import strata.spark.write.EncodeOutput.EncodeWriter;
import strata.spark.write.EncodeSource;
import strata.spark.write.EncodeSource.EncodeTypes;

/**
 * Writes Protobuf frames: compiles the message of {@code spark_udfs/encoding/protobuf_jvm.py} and a column's type, by
 * the rules of {@code spark_udfs/encoding/protobuf_payloads.py}.
 *
 * <p>Fields are in the order of their numbers, the entries of a map in protobuf's
 * deterministic order.
 */
public final class EncodeProto implements EncodeWriter {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final EncodeTypes types;
    private final byte[] prefix;
    private final JsonNode messages;
    private final EncodeProtoFields root;
    private final EncodeBackwards out = new EncodeBackwards();

    /**
     * @param message the message, as {@link EncodeMessages} writes it
     * @param prefix the bytes before each payload
     * @throws EncodeFailure if the column does not fit the message
     */
    public EncodeProto(String message, byte[] prefix, DataType column, EncodeTypes types) {
        this.types = types;
        this.prefix = prefix;
        try {
            JsonNode written = JSON.readTree(message);
            messages = written.path("messages");
            if (!(column instanceof StructType struct)) {
                throw new EncodeFailure("expected a struct, got " + types.name(column), "");
            }
            root = fields(messages.path(written.path("message").asText()), struct, "");
        } catch (JsonProcessingException impossible) {
            throw new IllegalArgumentException(impossible);
        }
    }

    @Override
    public byte[] write(InternalRow row) {
        try {
            return frame(row, false);
        } catch (EncodeFailure failure) {
            frame(row, true);
            throw failure;
        }
    }

    private byte[] frame(InternalRow row, boolean searches) {
        out.begin(searches);
        root.put(row.getStruct(0, root.size()), out);
        return out.frame(prefix);
    }

    private EncodeProtoFields fields(JsonNode message, StructType struct, String path) {
        Map<String, JsonNode> known = new HashMap<>();
        message.path("fields").forEach(one -> known.put(one.path("name").asText(), one));
        Map<String, Integer> places = EncodeTypes.places(struct, known.keySet(), path);
        List<EncodeProtoFields.Field> fields = new ArrayList<>();
        for (int place = 0; place < struct.size(); place++) {
            String name = struct.fields()[place].name();
            fields.add(field(known.get(name), struct.fields()[place].dataType(), path(path, name), place));
        }
        return new EncodeProtoFields(fields, choices(message, places, path));
    }

    private static String path(String path, String name) {
        return EncodeFailure.within(path, "." + name);
    }

    private static List<EncodeProtoFields.Choice> choices(JsonNode message, Map<String, Integer> places, String path) {
        List<EncodeProtoFields.Choice> choices = new ArrayList<>();
        for (JsonNode oneof : message.path("choices")) {
            List<String> names = new ArrayList<>();
            oneof.forEach(one -> names.add(one.asText()));
            names.retainAll(places.keySet());
            if (names.size() > 1) {
                choices.add(new EncodeProtoFields.Choice(
                        names.stream().mapToInt(places::get).toArray(),
                        names.stream().map(name -> path(path, name)).toArray(String[]::new)));
            }
        }
        return choices;
    }

    private EncodeProtoFields.Field field(JsonNode field, DataType column, String path, int place) {
        int number = field.path("number").asInt();
        return switch (field.path("label").asText()) {
            case "map" -> entries(field, column, path, place);
            case "many" -> {
                if (!(column instanceof ArrayType array)) {
                    throw new EncodeFailure("expected an array, got " + types.name(column), path);
                }
                EncodeProtoValue item = value(field, array.elementType(), path + "[]");
                yield new EncodeProtoFields.Repeated(
                        path, number, place, item, field.path("packed").asBoolean());
            }
            default -> new EncodeProtoFields.Single(
                    path,
                    number,
                    place,
                    value(field, column, path),
                    field.path("presence").asBoolean());
        };
    }

    private EncodeProtoFields.Field entries(JsonNode field, DataType column, String path, int place) {
        if (!(column instanceof MapType map)) {
            throw new EncodeFailure("expected a map, got " + types.name(column), path);
        }
        String inner = path + "{}";
        JsonNode parts = messages.path(field.path("message").asText()).path("fields");
        JsonNode first = parts.path(0);
        boolean isKeyFirst = first.path("number").asInt() == 1;
        JsonNode key = isKeyFirst ? first : parts.path(1);
        EncodeProtoValue keys = scalar(key, map.keyType(), inner);
        EncodeProtoValue values = value(isKeyFirst ? parts.path(1) : first, map.valueType(), inner);
        int number = field.path("number").asInt();
        return new EncodeProtoFields.Entries(path, number, place, keys, values, order(map.keyType()));
    }

    /**
     * Return the order in which Python's protobuf writes the entries of a map in deterministic mode:
     * numbers from the greatest to the least, without sign; a text before those that it begins with.
     */
    private static EncodeProtoFields.KeyOrder order(DataType type) {
        if (type instanceof StringType) {
            return (keys, one, other) -> compare(keys.getUTF8String(one), keys.getUTF8String(other));
        }
        if (type instanceof BooleanType) {
            return (keys, one, other) -> Boolean.compare(keys.getBoolean(other), keys.getBoolean(one));
        }
        if (type instanceof DecimalType decimal) {
            return (keys, one, other) -> Long.compareUnsigned(bits(keys, other, decimal), bits(keys, one, decimal));
        }
        EncodeSource.Whole whole = EncodeSource.plain(type);
        return (keys, one, other) -> Long.compareUnsigned(whole.get(keys, other, null), whole.get(keys, one, null));
    }

    private static long bits(ArrayData keys, int place, DecimalType type) {
        return keys.getDecimal(place, type.precision(), type.scale())
                .toJavaBigDecimal()
                .toBigInteger()
                .longValue();
    }

    private static int compare(UTF8String one, UTF8String other) {
        byte[] ours = one.getBytes(); // Spark 3.5 has no public getByte
        byte[] theirs = other.getBytes();
        int common = Math.min(ours.length, theirs.length);
        int at = Arrays.mismatch(ours, 0, common, theirs, 0, common);
        return at < 0 ? Integer.compare(theirs.length, ours.length) : Byte.compareUnsigned(ours[at], theirs[at]);
    }

    // Values

    private EncodeProtoValue value(JsonNode field, DataType column, String path) {
        if (!field.has("message")) {
            return scalar(field, column, path);
        }
        String name = field.path("message").asText();
        JsonNode message = messages.path(name);
        String kind = message.path("kind").asText();
        if (kind.equals("timestamp") && (column instanceof TimestampType || column instanceof TimestampNTZType)) {
            return new EncodeProtoValue.Time(path, false);
        }
        if (kind.equals("duration") && column instanceof DayTimeIntervalType) {
            return new EncodeProtoValue.Time(path, true);
        }
        if (kind.equals("wrapper") && !(column instanceof StructType)) {
            return new EncodeProtoValue.Wrapper(
                    path, scalar(message.path("fields").path(0), column, path));
        }
        if (column instanceof StructType struct) {
            return new EncodeProtoValue.Message(path, fields(message, struct, path));
        }
        throw new EncodeFailure("expected a struct for " + name + ", got " + types.name(column), path);
    }

    private EncodeProtoValue scalar(JsonNode field, DataType column, String path) {
        ProtoType type = ProtoType.of(field.path("type").asInt());
        EncodeProtoValue value =
                switch (type) {
                    case DOUBLE, FLOAT -> EncodeSource.real(column) == null
                                    || type == ProtoType.FLOAT && !(column instanceof FloatType)
                            ? null
                            : new EncodeProtoValue.Real(path, type.wire, EncodeSource.real(column));
                    case BOOL -> column instanceof BooleanType ? new EncodeProtoValue.Flag(path) : null;
                    case STRING -> column instanceof StringType ? new EncodeProtoValue.Text(path) : null;
                    case BYTES -> column instanceof BinaryType ? new EncodeProtoValue.Bytes(path) : null;
                    case ENUM -> symbol(field, column, path);
                    default -> whole(type, column, path);
                };
        if (value == null) {
            String wanted = type.title();
            throw new EncodeFailure("expected a column of " + wanted + ", got " + types.name(column), path);
        }
        return value;
    }

    private static EncodeProtoValue whole(ProtoType type, DataType column, String path) {
        EncodeSource.Whole whole = EncodeSource.plain(column);
        DecimalType decimal = column instanceof DecimalType given && given.scale() == 0 ? given : null;
        if (whole == null && decimal == null) {
            return null;
        }
        EncodeProtoValue.Bits bits = EncodeProtoValue.bits(whole, decimal, type.low, type.high, path);
        return new EncodeProtoValue.Number(path, type.wire, bits, type.isZigzag());
    }

    private static EncodeProtoValue symbol(JsonNode field, DataType column, String path) {
        Map<UTF8String, Integer> numbers = new HashMap<>();
        field.path("numbers")
                .properties()
                .forEach(one -> numbers.put(
                        UTF8String.fromString(one.getKey()), one.getValue().asInt()));
        boolean isClosed = field.path("closed").asBoolean();
        if (column instanceof StringType) {
            return new EncodeProtoValue.Name(path, field.path("enum").asText(), numbers, isClosed);
        }
        EncodeSource.Whole whole = EncodeSource.plain(column);
        if (whole == null) {
            return null;
        }
        ProtoType type = ProtoType.INT32; // an enum has its range
        EncodeProtoValue.Bits bits = EncodeProtoValue.bits(whole, null, type.low, type.high, path);
        return new EncodeProtoValue.Number(path, type.wire, isClosed ? known(bits, numbers, path) : bits, false);
    }

    private static EncodeProtoValue.Bits known(
            EncodeProtoValue.Bits bits, Map<UTF8String, Integer> numbers, String path) {
        Set<Integer> known = new HashSet<>(numbers.values());
        return (from, i) -> {
            long number = bits.get(from, i);
            if (!known.contains((int) number)) {
                throw new EncodeFailure(EncodeProtoValue.OUT_OF_RANGE, path);
            }
            return number;
        };
    }

    /**
     * Writes a message out for {@link EncodeProto}, from the descriptors of a registry: what
     * {@code spark_udfs/encoding/protobuf_jvm.py} does for {@code encode}.
     */
    public static final class EncodeMessages {
        /** The well-known messages that become columns of their own kind. */
        static final Map<String, String> KINDS = kinds();

        private static final ObjectMapper JSON = new ObjectMapper();

        private final ObjectNode messages = JSON.createObjectNode();

        private EncodeMessages() {}

        /**
         * Return a message, and those inside it, as JSON.
         *
         * @throws UnusableSchema if the JVM does not encode a part of it
         */
        public static String write(ProtoSchema.Message message) {
            EncodeMessages made = new EncodeMessages();
            made.add(message);
            return JSON.createObjectNode()
                    .put("message", message.name)
                    .set("messages", made.messages)
                    .toString();
        }

        private void add(ProtoSchema.Message message) {
            if (messages.has(message.name)) {
                return;
            }
            if (message.syntax.equals(ProtoSchema.EDITIONS)) {
                throw onlyInPython("an edition of Protobuf (" + message.name + ")");
            }
            ObjectNode written = messages.putObject(message.name);
            written.put("kind", KINDS.getOrDefault(message.name, ""));
            ArrayNode fields = written.putArray("fields");
            message.fields.values().forEach(one -> fields.add(field(message, one)));
            addChoices(message, written.putArray("choices"));
            for (ProtoSchema.Field field : message.fields.values()) {
                if (field.message != null) {
                    add(field.message);
                }
            }
        }

        private static ObjectNode field(ProtoSchema.Message owner, ProtoSchema.Field field) {
            String full = owner.name + "." + field.name;
            if (field.type == ProtoType.GROUP) {
                throw onlyInPython("the group " + full);
            }
            if (field.isRequired) {
                throw onlyInPython("the required field " + full);
            }
            boolean isMessage = field.type == ProtoType.MESSAGE;
            boolean hasPresence = isMessage || field.oneof >= 0 || !owner.syntax.equals(ProtoSchema.PROTO3);
            ObjectNode written = JSON.createObjectNode();
            written.put("name", field.name).put("number", field.number).put("type", field.type.ordinal());
            written.put("label", field.isMap() ? "map" : field.isRepeated ? "many" : "one");
            written.put("presence", hasPresence && !field.isRepeated);
            written.put("packed", isPacked(owner, field));
            if (isMessage) {
                if (field.message == null) {
                    throw new UnusableSchema("the registry has no type " + field.typeName + " of " + full);
                }
                written.put("message", field.message.name);
            } else if (field.type == ProtoType.ENUM) {
                addNumbers(field, full, written);
            }
            return written;
        }

        private static boolean isPacked(ProtoSchema.Message owner, ProtoSchema.Field field) {
            return field.isRepeated
                    && !field.type.isSized()
                    && (field.packed == null ? owner.syntax.equals(ProtoSchema.PROTO3) : field.packed);
        }

        private static void addNumbers(ProtoSchema.Field field, String full, ObjectNode written) {
            if (field.numbers == null) {
                throw new UnusableSchema("the registry has no type " + field.typeName + " of " + full);
            }
            if (field.numbers.syntax().equals(ProtoSchema.EDITIONS)) {
                throw onlyInPython("an edition of Protobuf (" + full + ")");
            }
            written.put("enum", field.numbers.name());
            ObjectNode numbers = written.putObject("numbers");
            field.numbers.values().forEach(numbers::put);
            written.put("closed", !field.numbers.syntax().equals(ProtoSchema.PROTO3));
        }

        /** Add the names of each oneof of several fields. */
        private static void addChoices(ProtoSchema.Message message, ArrayNode choices) {
            Map<Integer, List<String>> names = new TreeMap<>();
            for (ProtoSchema.Field field : message.fields.values()) {
                if (field.oneof >= 0) {
                    names.computeIfAbsent(field.oneof, oneof -> new ArrayList<>())
                            .add(field.name);
                }
            }
            names.values().stream().filter(one -> one.size() > 1).forEach(one -> one.forEach(choices.addArray()::add));
        }

        private static UnusableSchema onlyInPython(String part) {
            return new UnusableSchema("SQL does not encode " + part + "; make the column by strata.spark_udfs.encode");
        }

        private static Map<String, String> kinds() {
            Map<String, String> kinds = new HashMap<>();
            kinds.put("google.protobuf.Timestamp", "timestamp");
            kinds.put("google.protobuf.Duration", "duration");
            for (String type :
                    List.of("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")) {
                kinds.put("google.protobuf." + type + "Value", "wrapper");
            }
            return kinds;
        }
    }
}
