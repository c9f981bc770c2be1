package strata.spark.proto;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.bytes.Limits.Budget;
import strata.spark.bytes.ProtoWire;
import strata.spark.proto.ProtoField.ProtoMap;
import strata.spark.proto.ProtoMessage.Check;
import strata.spark.proto.ProtoMessage.Check.Rule;
import strata.spark.row.Node;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.ProtoSchema.ProtoType;

/**
 * The reader schema's message, as the driver describes it, and the nodes that read it from a writer's messages.
 *
 * <p>Fields match by number. Protobuf itself drops a field that the schemas encode differently, and truncates a wider
 * number; here the first is an error, and the second is read as the writer's type and must fit the column.
 */
public final class ProtoReader {
    /** A field of the reader; {@code message} is null unless the type is a message. */
    private record Field(
            String owner,
            String name,
            int number,
            ProtoType type,
            String label,
            boolean hasPresence,
            byte[] zero,
            Map<Integer, String> names,
            boolean isText,
            String message,
            String kind,
            int slot,
            int oneof) {
        public boolean isMap() {
            return label.equals("map");
        }

        public boolean isRepeated() {
            return !label.equals("one");
        }

        public boolean isColumn() {
            return slot != ProtoColumns.UNREAD;
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    public final String message;
    private final Map<String, List<Field>> messages = new HashMap<>();

    /** @param text the description that {@code strata.spark_udfs.decoding.protobuf_jvm} makes */
    public ProtoReader(String text) {
        try {
            JsonNode root = JSON.readTree(text);
            this.message = root.path("message").asText();
            root.path("messages").properties().forEach(one -> {
                List<Field> fields = new ArrayList<>();
                one.getValue().forEach(field -> fields.add(field(one.getKey(), field)));
                messages.put(one.getKey(), fields);
            });
        } catch (IOException error) {
            throw new IllegalArgumentException("not a reader schema of Strata");
        }
    }

    private static Field field(String owner, JsonNode node) {
        Map<Integer, String> names = new HashMap<>();
        node.path("names")
                .properties()
                .forEach(name -> names.put(
                        Integer.valueOf(name.getKey()), name.getValue().asText()));
        return new Field(
                owner,
                node.path("name").asText(),
                node.path("number").asInt(),
                ProtoType.of(node.path("type").asInt()),
                node.path("label").asText(),
                node.path("presence").asBoolean(),
                HexFormat.of().parseHex(node.path("zero").asText()),
                names,
                node.path("text").asBoolean(),
                node.path("message").asText(null),
                node.path("kind").asText(""),
                node.path("slot").asInt(),
                node.path("oneof").asInt(-1));
    }

    /**
     * Return the node that reads a writer's message.
     *
     * @throws Damage if the writer encodes a field differently; the path is that of the field
     */
    public ProtoMessage compile(ProtoSchema.Message writer) {
        Map<String, ProtoType> written = new HashMap<>();
        Map<String, Boolean> seen = new HashMap<>();
        for (Field field : messages.get(message)) {
            if (field.isColumn()) {
                compare(field, writer, field.name(), written, seen);
            }
        }
        return new Compilation(written).node(message);
    }

    // Comparison

    private void compare(
            Field reader,
            ProtoSchema.Message owner,
            String path,
            Map<String, ProtoType> written,
            Map<String, Boolean> seen) {
        ProtoSchema.Field writer = owner.fields.get(reader.number());
        if (writer == null) {
            return;
        }
        boolean isAlike = reader.type().encoding.equals(writer.type.encoding)
                && cardinality(reader).equals(cardinality(writer));
        if (!isAlike) {
            throw mismatch(path, reader, describe(writer));
        }
        if (reader.type().isWhole && writer.type.isWhole) {
            ProtoType known = written.putIfAbsent(reader.owner() + "." + reader.name(), writer.type);
            if (known != null && known != writer.type) {
                throw mismatch(path, reader, "several types");
            }
        }
        if (reader.message() != null
                && writer.message != null
                && messages.containsKey(reader.message())
                && seen.put(reader.message() + " " + writer.message.name, true) == null) {
            for (Field inner : messages.get(reader.message())) {
                compare(inner, writer.message, path + "." + inner.name(), written, seen);
            }
        }
    }

    private static Damage mismatch(String path, Field reader, String writer) {
        String place = " (at field " + path + ")";
        return new Damage(
                Damage.RESOLUTION,
                "the reader schema has " + describe(reader) + " where the writer schema has " + writer + place);
    }

    private static String cardinality(Field field) {
        return field.isMap() ? "map" : cardinality(field.isRepeated(), field.type());
    }

    private static String cardinality(ProtoSchema.Field field) {
        return field.isMap() ? "map" : cardinality(field.isRepeated, field.type);
    }

    /** Single and repeated bytes or messages can be read as each other; numbers, which may be packed, cannot. */
    private static String cardinality(boolean isRepeated, ProtoType type) {
        return !isRepeated || type.isSized() ? "" : "repeated ";
    }

    private static String describe(Field field) {
        return describe(field.isMap(), field.isRepeated(), field.message(), field.type());
    }

    private static String describe(ProtoSchema.Field field) {
        boolean isMessage = field.type.isMessage();
        return describe(field.isMap(), field.isRepeated, isMessage ? field.typeName : null, field.type);
    }

    private static String describe(boolean isMap, boolean isRepeated, String message, ProtoType type) {
        return isMap ? "a map" : (isRepeated ? "repeated " : "") + (message != null ? message : type.title());
    }

    // Nodes

    /** Makes the nodes that read messages of one writer. */
    private final class Compilation {
        /** The writer's type of each field that is a whole number. */
        private final Map<String, ProtoType> written;

        private final Budget budget = new Budget();
        private final Map<String, Check> checks = new HashMap<>();

        Compilation(Map<String, ProtoType> written) {
            this.written = written;
        }

        ProtoMessage node(String name) {
            List<ProtoField> fields = new ArrayList<>();
            Map<Integer, List<ProtoField>> oneofs = new HashMap<>();
            for (Field field : messages.get(name)) {
                budget.spend();
                ProtoField made = field(field);
                fields.add(made);
                if (field.oneof() >= 0) {
                    oneofs.computeIfAbsent(field.oneof(), key -> new ArrayList<>())
                            .add(made);
                }
            }
            for (List<ProtoField> members : oneofs.values()) {
                for (ProtoField member : members) {
                    member.rivals = members.stream()
                            .filter(other -> other != member && !(other instanceof ProtoField.Unread))
                            .toArray(ProtoField[]::new);
                }
            }
            return new ProtoMessage(fields, check(name, false));
        }

        private ProtoField field(Field field) {
            if (!field.isColumn()) {
                Set<Integer> numbers =
                        field.names().isEmpty() ? null : field.names().keySet();
                return new ProtoField.Unread(field.name(), field.number(), field.type().wire, numbers);
            }
            if (field.isMap()) {
                List<Field> entry = messages.get(field.message());
                Field key = entry.stream()
                        .filter(part -> part.number() == 1)
                        .findFirst()
                        .orElseThrow();
                Field value = entry.stream()
                        .filter(part -> part.number() == 2)
                        .findFirst()
                        .orElseThrow();
                boolean isFixed = ProtoScalars.isPlain(key.type(), key.type()) && key.type() != ProtoType.STRING;
                return new ProtoMap(
                        field.name(),
                        field.number(),
                        field.slot(),
                        part(key),
                        part(value),
                        width(key),
                        width(value),
                        !isFixed);
            }
            Node value = value(field);
            int wire = field.type().wire;
            if (field.isRepeated()) {
                return new ProtoField.Many(field.name(), field.number(), field.slot(), value, wire, width(field));
            }
            if (field.message() == null && ProtoScalars.isPlain(field.type(), type(field)) && isAllZero(field.zero())) {
                return new ProtoField.Direct(
                        field.name(), field.number(), field.slot(), field.hasPresence(), value, wire);
            }
            Node absent = field.hasPresence() ? null : new Node.Default(value, field.zero());
            return new ProtoField.Deferred(
                    field.name(), field.number(), field.slot(), value, absent, wire, field.message() != null);
        }

        private ProtoField.Deferred part(Field field) {
            Node value = value(field).asItem();
            Node absent = new Node.Default(value, field.zero());
            return new ProtoField.Deferred(
                    field.name(), field.number(), 0, value, absent, field.type().wire, field.message() != null);
        }

        private ProtoType type(Field field) {
            ProtoType own = field.type();
            return own.isWhole ? written.getOrDefault(field.owner() + "." + field.name(), own) : own;
        }

        private Node value(Field field) {
            if (field.message() == null) {
                return field.type() == ProtoType.ENUM
                        ? new ProtoScalars.Names(field.names(), field.type())
                        : ProtoScalars.of(field.type(), type(field));
            }
            return switch (field.kind()) {
                case "timestamp" -> ProtoScalars.micros(true);
                case "duration" -> ProtoScalars.micros(false);
                case "wrapper" -> {
                    Field inner = messages.get(field.message()).get(0);
                    yield ProtoScalars.wrapped(value(inner), inner.type().wire, inner.zero());
                }
                default -> node(field.message());
            };
        }

        private int width(Field field) {
            if (field.message() == null) {
                return field.type().width;
            }
            return field.kind().equals("wrapper")
                    ? width(messages.get(field.message()).get(0))
                    : 8;
        }

        // Checks

        /** Return the check of a message, which is the same wherever it is. */
        private Check check(String name, boolean isEntry) {
            Check known = checks.get(name);
            if (known != null) {
                return known;
            }
            Check made = new Check(isEntry);
            checks.put(name, made);
            for (Field field : messages.get(name)) {
                if (!field.isColumn()) {
                    continue;
                }
                Rule rule = rule(field);
                Check inner = rule == Rule.MESSAGE ? check(field.message(), field.isMap()) : null;
                ProtoType as = type(field);
                boolean packs = field.isRepeated() && field.type().wire != ProtoWire.BYTES;
                int longest = field.names().values().stream()
                        .mapToInt(symbol -> 4 * symbol.length())
                        .max()
                        .orElse(0);
                // a default is written as the reader's type, and read as the writer's
                boolean isSafe = as == field.type() || rule != Rule.SECONDS && isAllZero(field.zero());
                Check.Field checked = new Check.Field(field.type().wire, packs, rule, as, inner);
                made.add(field.number(), checked, longest + field.zero().length, isSafe);
            }
            return made;
        }

        private Rule rule(Field field) {
            if (field.message() != null) {
                return Rule.MESSAGE;
            }
            if (ProtoScalars.SECONDS.contains(field.owner() + "." + field.name())) {
                return Rule.SECONDS;
            }
            return field.type() == ProtoType.STRING
                    ? field.isText() ? Rule.TEXT : Rule.LOOSE_TEXT
                    : ProtoScalars.rule(field.type(), type(field));
        }
    }

    private static boolean isAllZero(byte[] bytes) {
        for (byte each : bytes) {
            if (each != 0) {
                return false;
            }
        }
        return true;
    }
}
