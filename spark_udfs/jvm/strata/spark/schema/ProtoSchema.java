package strata.spark.schema;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.bytes.ProtoWire;

/**
 * The messages of a writer schema and its references, read from the descriptors that the registry gives as
 * {@code format=serialized}.
 *
 * <p>Field numbers of the descriptors are those of google/protobuf/descriptor.proto. Some registries leave the types of
 * fields unresolved, so names are resolved here, from the innermost scope outwards.
 */
public final class ProtoSchema {
    public static final String PROTO3 = "proto3";
    public static final String EDITIONS = "editions";
    private static final int MAX_DEPTH = 64;

    /** A message; {@code nested} is in the order of the descriptor, by which frames count. */
    public static final class Message {
        public final String name;
        public final String syntax;
        public final Map<Integer, Field> fields = new LinkedHashMap<>();
        public final List<Message> nested = new ArrayList<>();
        boolean isEntry;

        public Message(String name, String syntax) {
            this.name = name;
            this.syntax = syntax;
        }
    }

    /** An enum: the numbers of its values, by name. */
    public record Numbers(String name, String syntax, Map<String, Integer> values) {}

    /**
     * A field; {@code message} and {@code numbers} are null unless its type is a message, or an enum, of these files,
     * {@code oneof} is negative outside a oneof, and {@code packed} and {@code defaultValue} are null if the schema does
     * not say them.
     */
    public static final class Field {
        public String name = "";
        public int number;
        public ProtoType type = ProtoType.UNKNOWN;
        public String typeName = "";
        public boolean isRepeated;
        public boolean isRequired;
        public int oneof = -1;
        public Boolean packed;
        public String defaultValue;
        public Message message;
        public Numbers numbers;

        public boolean isMap() {
            return message != null && message.isEntry && isRepeated;
        }

        /** Return its message, which may be of a file that no registry gives; null if it has none. */
        public Message messageOrKnown() {
            return message != null || !type.isMessage() ? message : Known.FILES.named(typeName);
        }
    }

    /** The files that a schema may import without a reference, which no registry gives; the build of the jar adds them. */
    private static final String KNOWN = "/strata/spark/known_files.txt";

    private static final class Known {
        private static final ProtoSchema FILES = parseWithKnown(List.of());
    }

    private final Map<String, Message> messages = new HashMap<>();
    private final Map<String, Numbers> enums = new HashMap<>();
    private List<Message> top = List.of();
    /** The messages of the last file, nested ones too, by full name. */
    private List<Message> sorted = List.of();

    private ProtoSchema() {}

    /** Parse the last of the files; each comes after those it refers to. */
    public static ProtoSchema parse(List<String> files) {
        ProtoSchema schema = new ProtoSchema();
        try {
            for (String file : files) {
                schema.readFile(Base64.getDecoder().decode(file.strip()));
            }
        } catch (IllegalArgumentException | Damage notADescriptor) {
            throw new UnusableSchema("not a descriptor in base64: " + notADescriptor.getMessage());
        }
        schema.messages.values().forEach(schema::resolve);
        Map<String, Message> byName = new TreeMap<>();
        schema.top.forEach(message -> addAll(message, message.name, byName));
        schema.sorted = List.copyOf(byName.values());
        return schema;
    }

    /** Parse the last of some files, each after those it refers to, with the known ones. */
    public static ProtoSchema parseWithKnown(List<String> files) {
        List<String> all = new ArrayList<>();
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(ProtoSchema.class.getResourceAsStream(KNOWN), StandardCharsets.US_ASCII))) {
            lines.lines().forEach(all::add);
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        all.addAll(files);
        return parse(all);
    }

    /** Return the message at a path of indexes, or null. */
    public Message at(List<Integer> indexes) {
        List<Message> level = top;
        Message found = null;
        for (int index : indexes) {
            if (index >= level.size()) {
                return null;
            }
            found = level.get(index);
            level = found.nested;
        }
        return found;
    }

    /** Return the message with a full name, in any of the files; or null. */
    public Message named(String name) {
        return messages.get(name);
    }

    /** Return the outermost messages of the last file. */
    public List<Message> top() {
        return top;
    }

    /** Return the indexes of the message with a full name in the last file, outermost first; null if it has none. */
    public List<Integer> indexes(String name) {
        return indexes(top, name);
    }

    private static List<Integer> indexes(List<Message> level, String name) {
        for (int place = 0; place < level.size(); place++) {
            Message one = level.get(place);
            List<Integer> inner = one.name.equals(name) ? List.of() : indexes(one.nested, name);
            if (inner != null) {
                List<Integer> path = new ArrayList<>(inner);
                path.add(0, place);
                return path;
            }
        }
        return null;
    }

    /** Return the message at a place among all messages, sorted by full name, as AWS Glue counts; or null. */
    public Message atPlace(int place) {
        return place < sorted.size() ? sorted.get(place) : null;
    }

    private static void addAll(Message message, String name, Map<String, Message> all) {
        all.put(name, message);
        Map<Message, String> entries = new HashMap<>();
        for (Field field : message.fields.values()) {
            if (field.isMap()) { // protoc's name, which other compilers may write differently
                entries.put(field.message, message.name + "." + entryName(field.name));
            }
        }
        for (Message nested : message.nested) {
            addAll(nested, entries.getOrDefault(nested, nested.name), all);
        }
    }

    private static String entryName(String field) {
        StringBuilder name = new StringBuilder();
        for (String part : field.split("_")) {
            name.append(part.isEmpty() ? "" : part.substring(0, 1).toUpperCase(Locale.ROOT) + part.substring(1));
        }
        return name.append("Entry").toString();
    }

    // Names

    private void resolve(Message message) {
        for (Field field : message.fields.values()) {
            boolean isNamed = !field.typeName.isEmpty();
            String name = isNamed ? find(field.typeName, message.name) : "";
            field.message = messages.get(name);
            field.numbers = enums.get(name);
            if (isNamed && field.type == ProtoType.UNKNOWN) {
                field.type = field.numbers != null ? ProtoType.ENUM : ProtoType.MESSAGE;
            }
            field.typeName = name;
        }
    }

    private String find(String name, String scope) {
        if (name.startsWith(".")) {
            return name.substring(1);
        }
        for (String outer = scope; ; outer = outer.substring(0, Math.max(outer.lastIndexOf('.'), 0))) {
            String full = outer.isEmpty() ? name : outer + "." + name;
            if (outer.isEmpty() || messages.containsKey(full) || enums.containsKey(full)) {
                return full;
            }
        }
    }

    // Descriptors

    private interface Handler {
        void field(int number, Cursor in, int tag);
    }

    private static void each(Cursor in, Handler handler) {
        while (in.at < in.end) {
            int tag = ProtoWire.tag(in);
            int before = in.at;
            ProtoWire.skip(in, tag);
            int after = in.at;
            in.at = before;
            handler.field(tag >>> 3, in, tag);
            in.at = after;
        }
    }

    private static Cursor inside(Cursor in) {
        int length = ProtoWire.length(in);
        Cursor inner = new Cursor();
        inner.open(in.bytes, in.at, false);
        inner.end = in.at + length;
        return inner;
    }

    private static String text(Cursor in) {
        int length = ProtoWire.length(in);
        return new String(in.bytes, in.at, length, StandardCharsets.UTF_8);
    }

    private void readFile(byte[] bytes) {
        Cursor in = new Cursor();
        in.open(bytes, 0, false);
        String[] scope = {""};
        String[] syntax = {""};
        each(in, (number, at, tag) -> {
            scope[0] = number == 2 ? text(at) : scope[0];
            syntax[0] = number == 12 ? text(at) : syntax[0];
        });
        in.open(bytes, 0, false);
        List<Message> found = new ArrayList<>();
        each(in, (number, at, tag) -> {
            if (number == 4) {
                found.add(readMessage(inside(at), scope[0], syntax[0], MAX_DEPTH));
            } else if (number == 5) {
                readEnum(inside(at), scope[0], syntax[0]);
            }
        });
        top = found;
    }

    private static String within(String scope, String name) {
        return scope.isEmpty() ? name : scope + "." + name;
    }

    private static String nameOf(Cursor in) {
        String[] name = {""};
        each(in, (number, at, tag) -> name[0] = number == 1 ? text(at) : name[0]);
        return name[0];
    }

    private Message readMessage(Cursor in, String scope, String syntax, int depth) {
        if (depth == 0) {
            throw new UnusableSchema("the messages of the schema are nested too deeply");
        }
        int start = in.at;
        Message message = new Message(within(scope, nameOf(in)), syntax);
        in.at = start;
        messages.put(message.name, message);
        each(in, (number, at, tag) -> {
            switch (number) {
                case 2 -> {
                    Field field = readField(inside(at));
                    message.fields.put(field.number, field);
                }
                case 3 -> message.nested.add(readMessage(inside(at), message.name, syntax, depth - 1));
                case 4 -> readEnum(inside(at), message.name, syntax);
                case 7 -> each(inside(at), (option, value, kind) -> {
                    if (option == 7) {
                        message.isEntry = ProtoWire.varint(value) != 0;
                    }
                });
                default -> {}
            }
        });
        return message;
    }

    private void readEnum(Cursor in, String scope, String syntax) {
        String[] name = {""};
        Map<String, Integer> values = new LinkedHashMap<>();
        each(in, (number, at, tag) -> {
            if (number == 1) {
                name[0] = text(at);
            } else if (number == 2) {
                readValue(inside(at), values);
            }
        });
        enums.put(within(scope, name[0]), new Numbers(name[0], syntax, values));
    }

    private static void readValue(Cursor in, Map<String, Integer> values) {
        String[] name = {""};
        int[] value = {0};
        each(in, (number, at, tag) -> {
            if (number == 1) {
                name[0] = text(at);
            } else if (number == 2) {
                value[0] = (int) ProtoWire.varint(at);
            }
        });
        values.put(name[0], value[0]);
    }

    private static Field readField(Cursor in) {
        Field field = new Field();
        each(in, (number, at, tag) -> {
            switch (number) {
                case 1 -> field.name = text(at);
                case 3 -> field.number = (int) ProtoWire.varint(at);
                case 4 -> {
                    long label = ProtoWire.varint(at);
                    field.isRequired = label == 2;
                    field.isRepeated = label == 3;
                }
                case 5 -> field.type = ProtoType.of((int) ProtoWire.varint(at));
                case 6 -> field.typeName = text(at);
                case 7 -> field.defaultValue = text(at);
                case 8 -> each(inside(at), (option, value, kind) -> {
                    if (option == 2) {
                        field.packed = ProtoWire.varint(value) != 0;
                    }
                });
                case 9 -> field.oneof = (int) ProtoWire.varint(at);
                default -> {}
            }
        });
        return field;
    }

    /**
     * The types of Protobuf's fields, by their numbers in google/protobuf/descriptor.proto: how the bytes are written, and
     * what a column holds. {@code UNKNOWN} is a number that is not a type.
     */
    public enum ProtoType {
        UNKNOWN(ProtoWire.VARINT, "", 8, null),
        DOUBLE(ProtoWire.FIXED64, "double", 8, DataTypes.DoubleType),
        FLOAT(ProtoWire.FIXED32, "float", 4, DataTypes.FloatType),
        INT64(ProtoWire.VARINT, "varint", 8, DataTypes.LongType, 63, true),
        UINT64(ProtoWire.VARINT, "varint", 8, Unsigned.COLUMN, 64, false),
        INT32(ProtoWire.VARINT, "varint", 4, DataTypes.IntegerType, 31, true),
        FIXED64(ProtoWire.FIXED64, "fixed64", 8, Unsigned.COLUMN, 64, false),
        FIXED32(ProtoWire.FIXED32, "fixed32", 8, DataTypes.LongType, 32, false),
        BOOL(ProtoWire.VARINT, "varint", 1, DataTypes.BooleanType),
        STRING(ProtoWire.BYTES, "bytes", 8, DataTypes.StringType),
        GROUP(ProtoWire.START_GROUP, "group", 8, null),
        MESSAGE(ProtoWire.BYTES, "message", 8, null),
        BYTES(ProtoWire.BYTES, "bytes", 8, DataTypes.BinaryType),
        UINT32(ProtoWire.VARINT, "varint", 8, DataTypes.LongType, 32, false),
        ENUM(ProtoWire.VARINT, "varint", 8, DataTypes.StringType),
        SFIXED32(ProtoWire.FIXED32, "fixed32", 4, DataTypes.IntegerType, 31, true),
        SFIXED64(ProtoWire.FIXED64, "fixed64", 8, DataTypes.LongType, 63, true),
        SINT32(ProtoWire.VARINT, "zigzag", 4, DataTypes.IntegerType, 31, true),
        SINT64(ProtoWire.VARINT, "zigzag", 8, DataTypes.LongType, 63, true);

        private static final class Unsigned {
            /** It holds any unsigned number of 64 bits. */
            static final DataType COLUMN = DataTypes.createDecimalType(20, 0);
        }

        private static final ProtoType[] ALL = values();

        /** The wire type. */
        public final int wire;

        /** What two types have in common of which each can read the other's bytes. */
        public final String encoding;

        /** The size in bytes of a value in one of Spark's arrays. */
        public final int width;

        /** The type of a column of single values; null for messages. */
        public final DataType column;

        /** Whether it is a type of whole numbers; an enum is not. */
        public final boolean isWhole;

        /** The least and the greatest whole number. */
        public final BigInteger low;

        public final BigInteger high;

        ProtoType(int wire, String encoding, int width, DataType column) {
            this(wire, encoding, width, column, 0, false);
        }

        ProtoType(int wire, String encoding, int width, DataType column, int bits, boolean isSigned) {
            this.wire = wire;
            this.encoding = encoding;
            this.width = width;
            this.column = column;
            this.isWhole = bits > 0;
            this.high = BigInteger.ONE.shiftLeft(bits).subtract(BigInteger.ONE);
            this.low = isSigned ? high.not() : BigInteger.ZERO;
        }

        /** Return the type with a number. */
        public static ProtoType of(int number) {
            return number > 0 && number < ALL.length ? ALL[number] : UNKNOWN;
        }

        /** Return the name that schemas have. */
        public String title() {
            return name().toLowerCase(Locale.ROOT);
        }

        /** Return whether values are messages. */
        public boolean isMessage() {
            return this == MESSAGE || this == GROUP;
        }

        /** Return whether a value says where it ends, so that repeated values are not packed. */
        public boolean isSized() {
            return isMessage() || this == STRING || this == BYTES;
        }

        /** Return whether whole numbers are written so that small negative ones are short. */
        public boolean isZigzag() {
            return this == SINT32 || this == SINT64;
        }
    }
}
