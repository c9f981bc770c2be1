package strata.spark.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import strata.spark.avro.SparkTypes;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.client.Http.RegistryFailure;
import strata.spark.client.RegistrySettings;
import strata.spark.proto.EncodeProto.EncodeMessages;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.Registry;
import strata.spark.schema.SchemaTexts;
import strata.spark.valid.ValidDocuments;
import strata.spark.valid.ValidDocuments.OnlyInPython;
import strata.spark.valid.ValidSchema;

/**
 * What is decided about one encode before it runs: by the driver in Python, which sends it as the name of the function,
 * or here, for a function that SQL names by a subject.
 *
 * @param format the format of the payloads
 * @param schema the writer schema: Avro's text, with its references written out; for Protobuf, see
 * {@code EncodeProto}; for JSON, see {@code EncodeJson}
 * @param prefix the bytes before each payload, in hexadecimal digits
 * @param mode what a row that cannot be encoded becomes
 * @param origin names of the columns that a FAILFAST error shows
 * @param checks the rules by which rows of JSON are validated, see {@link ValidSchema}; empty if they are not
 */
public record EncodePlan(
        Format format, String schema, String prefix, FunctionName.Mode mode, List<String> origin, String checks)
        implements Serializable {
    public enum Format {
        AVRO,
        PROTOBUF,
        JSON
    }

    /** The namespace of the functions that encode. */
    public static final String NAMESPACE = "encode";

    private static final List<String> OPTIONS = List.of("version", "id", "mode", "message", "validate", "framing");
    private static final List<String> HEADER_OPTIONS = List.of("version", "id", "message", "key");
    private static final String ROLE = "writer schema";
    private static final String FIRST = "00";

    /**
     * Return the plan of a function; without one in its name, the registry is asked for the writer schema.
     *
     * @throws OnlyInPython if only Python workers can validate with the schema of the plan
     */
    public static EncodePlan of(FunctionName name, RegistrySettings settings) {
        return name.hasPlan() ? parse(name) : make(name, settings);
    }

    /**
     * Parse the name of a function, which holds a plan.
     *
     * @throws OnlyInPython if only Python workers can validate with its schema
     */
    public static EncodePlan parse(FunctionName name) {
        try {
            JsonNode plan = name.plan();
            ValidDocuments.Source schema = ValidDocuments.Source.of(plan);
            Map<String, ValidDocuments.Source> named = new HashMap<>();
            plan.path("named")
                    .properties()
                    .forEach(one -> named.put(one.getKey(), ValidDocuments.Source.of(one.getValue())));
            return new EncodePlan(
                    Format.valueOf(plan.path("format").asText()),
                    plan.has("files") ? message(plan) : schema.text(),
                    plan.path("prefix").asText(),
                    FunctionName.Mode.valueOf(plan.path("mode").asText()),
                    FunctionName.texts(plan.path("origin")),
                    plan.path("validate").asBoolean() ? ValidSchema.rules(schema, named) : "");
        } catch (UnusableSchema part) {
            throw new IllegalArgumentException("the schema cannot be used: " + part.getMessage());
        } catch (IOException | IllegalArgumentException error) {
            throw new IllegalArgumentException(
                    "not a function of Strata: call strata.spark_udfs.encode to make columns");
        }
    }

    /** Return the message to write; version 1 of plans has it as the schema. */
    private static String message(JsonNode plan) {
        ProtoSchema schema = ProtoSchema.parse(FunctionName.texts(plan.path("files")));
        return EncodeMessages.write(schema.named(plan.path("message").asText()));
    }

    public byte[] prefixBytes() {
        return HexFormat.of().parseHex(prefix);
    }

    // Functions that SQL names by a subject

    /** The place where a record names its schema. */
    private enum Framing {
        PREFIX,
        GUID,
        HEADER
    }

    /**
     * A schema to write with.
     *
     * @param schema as {@link EncodePlan} has it
     * @param indexes the message indexes of Protobuf, as in a frame, in hexadecimal digits
     */
    private record Target(Registry.Found found, String schema, String indexes) {
        public String byId() {
            return String.format("00%08x", found.id()) + indexes;
        }

        /** Return the bytes that name the schema by its GUID, which may take further requests. */
        String byGuid(RegistrySettings settings) {
            UUID guid = UUID.fromString(found.guid() == null ? asked(settings) : found.guid());
            return String.format("01%016x%016x", guid.getMostSignificantBits(), guid.getLeastSignificantBits())
                    + indexes;
        }

        private String asked(RegistrySettings settings) {
            String guid;
            try {
                guid = Registry.of(settings, found.format()).guid(found.id());
            } catch (RegistryFailure failure) {
                throw new IllegalArgumentException("no GUID of schema id " + found.id() + ": " + failure.getMessage());
            }
            if (guid == null) {
                throw new IllegalArgumentException("the schema has no GUID: the registry did not return one");
            }
            return guid;
        }
    }

    /** A header of a record. */
    public record Header(String name, byte[] value) {}

    /**
     * Return the plan of a function; the registry is asked for its schema and id.
     *
     * @throws IllegalArgumentException if the name says what cannot be done, the registry does not have the schema, or
     *     rules run before it is written
     */
    private static EncodePlan make(FunctionName name, RegistrySettings settings) {
        name.requireKnown(OPTIONS);
        FunctionName.Mode mode = name.mode(FunctionName.Mode.FAILFAST);
        Framing framing = framing(name);
        boolean validates = name.isTrue("validate", true);
        Target target = target(name, settings);
        Format format = Format.valueOf(target.found().format().name());
        boolean isChecked = format == Format.JSON && validates;
        String checks = isChecked ? checks(target.found(), settings) : "";
        String prefix =
                switch (framing) {
                    case PREFIX -> target.byId();
                    case GUID -> target.byGuid(settings);
                    case HEADER -> "";
                };
        return new EncodePlan(format, target.schema(), prefix, mode, List.of(), checks);
    }

    /** Return the rules by which rows of a JSON Schema are validated. */
    private static String checks(Registry.Found found, RegistrySettings settings) {
        try {
            Map<String, ValidDocuments.Source> named = new HashMap<>();
            Registry.of(settings, found.format())
                    .references(found)
                    .forEach((name, one) -> named.put(name, ValidDocuments.Source.of(one)));
            return ValidSchema.rules(ValidDocuments.Source.of(found.body()), named);
        } catch (OnlyInPython part) {
            throw new IllegalArgumentException("SQL does not encode " + part.getMessage()
                    + ": add validate=false, or make the column by strata.spark_udfs.encode");
        } catch (RegistryFailure | UnusableSchema failure) {
            throw new IllegalArgumentException(
                    "no references of schema id " + found.id() + ": " + failure.getMessage());
        }
    }

    /** Return the header of the records whose values, or keys, are written with the framing `header`. */
    public static Header header(FunctionName name, RegistrySettings settings) {
        name.requireKnown(HEADER_OPTIONS);
        String part = name.isTrue("key", false) ? "key" : "value";
        String value = target(name, settings).byGuid(settings);
        return new Header("__" + part + "_schema_id", HexFormat.of().parseHex(value));
    }

    private static Target target(FunctionName name, RegistrySettings settings) {
        Registry.Found found = name.schema(settings, ROLE);
        if (!found.rules().isEmpty()) {
            throw new IllegalArgumentException("schema id " + found.id() + " has rules for writing ("
                    + String.join(", ", found.rules())
                    + "), which SQL does not run: make the column by strata.spark_udfs.encode with rules=True");
        }
        String message = name.options().get("message");
        if (message != null && found.format() != Registry.Format.PROTOBUF) {
            throw new IllegalArgumentException("message needs a Protobuf schema, and the schema is " + found.format());
        }
        return switch (found.format()) {
            case AVRO -> {
                SparkTypes.of(SchemaTexts.parse(found.files()), ROLE, false);
                yield new Target(found, SchemaTexts.write(found.files()), "");
            }
            case PROTOBUF -> protobuf(found, message);
            case JSON -> new Target(found, found.text(), "");
        };
    }

    private static Target protobuf(Registry.Found found, String message) {
        try {
            ProtoSchema schema = ProtoSchema.parseWithKnown(found.files());
            ProtoSchema.Message first = schema.at(List.of(0));
            if (first == null) {
                throw new UnusableSchema("the schema has no message");
            }
            List<Integer> indexes = message == null ? List.of(0) : schema.indexes(message);
            if (indexes == null) {
                throw new UnusableSchema("the schema has no message " + message + "; the first is " + first.name);
            }
            return new Target(found, EncodeMessages.write(schema.at(indexes)), written(indexes));
        } catch (UnusableSchema unusable) {
            throw new IllegalArgumentException(unusable.getMessage());
        }
    }

    /** Return message indexes as in a frame: their number and each of them as zigzag varints, or 0 for the first. */
    private static String written(List<Integer> indexes) {
        if (indexes.equals(List.of(0))) {
            return FIRST;
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        put(indexes.size(), out);
        indexes.forEach(index -> put(index, out));
        return HexFormat.of().formatHex(out.toByteArray());
    }

    private static void put(int number, ByteArrayOutputStream out) {
        int left = number << 1;
        for (; left > 0x7F; left >>>= 7) {
            out.write(left & 0x7F | 0x80);
        }
        out.write(left);
    }

    // Options

    private static Framing framing(FunctionName name) {
        String framing = name.options().getOrDefault("framing", "prefix");
        for (Framing one : Framing.values()) {
            if (framing.equals(one.name().toLowerCase(Locale.ROOT))) {
                return one;
            }
        }
        throw new IllegalArgumentException("framing is " + framing + "; allowed are prefix, guid, header");
    }
}
