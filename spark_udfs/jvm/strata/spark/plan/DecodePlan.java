package strata.spark.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import strata.spark.avro.SparkTypes;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.client.Http.RegistryFailure;
import strata.spark.client.RegistrySettings;
import strata.spark.json.JsonColumns;
import strata.spark.proto.ProtoColumns;
import strata.spark.schema.Columns;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.Registry;
import strata.spark.schema.SchemaTexts;

/**
 * What is decided about one decode before it runs: by the driver in Python, which sends it as the name of the function,
 * or here, for a function that SQL names by a subject.
 *
 * @param format the format of the payloads
 * @param reader the Avro reader schema, see {@code Defaults.readerSchema}; else see {@code ProtoReader} and
 *     {@code JsonReader}
 * @param type the column's type as JSON
 * @param mode what a frame that cannot be decoded becomes
 * @param origin names of the columns that a FAILFAST error shows
 * @param fields the positions of the fields of the value to build, while others are only checked; null for all
 */
public record DecodePlan(
        Registry.Format format,
        String reader,
        String type,
        FunctionName.Mode mode,
        List<String> origin,
        TreeSet<Integer> fields)
        implements Serializable {
    private static final List<String> OPTIONS =
            List.of("version", "id", "mode", "origin", "message", "columns", "validate");
    private static final String READER = "reader schema";

    /** Return the plan of a function; without one in its name, the registry is asked for the reader schema. */
    public static DecodePlan of(FunctionName name, RegistrySettings settings) {
        return name.hasPlan() ? parse(name) : make(name, settings);
    }

    /** Parse the name of a function, which holds a plan. */
    public static DecodePlan parse(FunctionName name) {
        JsonNode plan;
        Registry.Format format;
        FunctionName.Mode mode;
        try {
            plan = name.plan();
            format = Registry.Format.valueOf(plan.path("format").asText("AVRO"));
            mode = FunctionName.Mode.valueOf(plan.path("mode").asText());
        } catch (IOException | IllegalArgumentException error) {
            throw new IllegalArgumentException(
                    "not a function of Strata: call strata.spark_udfs.decode to make columns");
        }
        try {
            Columns columns = columns(format, plan);
            List<String> origin = FunctionName.texts(plan.path("origin"));
            return new DecodePlan(format, columns.reader(), columns.type().json(), mode, origin, null);
        } catch (UnusableSchema part) {
            throw new IllegalArgumentException("the reader schema cannot be used: " + part.getMessage());
        }
    }

    /** Return the columns of a plan's inputs, or those that it states itself: of Avro up to version 2, of all in version 1. */
    private static Columns columns(Registry.Format format, JsonNode plan) {
        List<String> chosen = plan.path("columns").isArray() ? FunctionName.texts(plan.path("columns")) : null;
        if (plan.has("files")) {
            ProtoSchema schema = ProtoSchema.parse(FunctionName.texts(plan.path("files")));
            return ProtoColumns.of(schema, plan.path("message").asText(), chosen);
        }
        if (format == Registry.Format.AVRO && plan.has("text")) {
            return avro(
                    List.of(plan.path("text").asText()),
                    plan.path("members_by_type").asBoolean());
        }
        if (format == Registry.Format.JSON && plan.has("text")) {
            Map<String, String> references = new LinkedHashMap<>();
            plan.path("references")
                    .properties()
                    .forEach(one -> references.put(one.getKey(), one.getValue().asText()));
            return JsonColumns.of(plan.path("text").asText(), references, chosen);
        }
        DataType type = DataType.fromJson(plan.path("type").toString());
        return new Columns(plan.path("reader").asText(), type);
    }

    /**
     * Return the plan of a function that a subject or an id names.
     *
     * @throws IllegalArgumentException if the name says what cannot be done, or the registry does not have the schema
     */
    private static DecodePlan make(FunctionName name, RegistrySettings settings) {
        name.requireKnown(OPTIONS);
        FunctionName.Mode mode = name.mode(FunctionName.Mode.DEADLETTER);
        boolean validates = name.isTrue("validate", false);
        Registry.Found found = name.schema(settings, READER);
        String message = name.options().get("message");
        if (message != null && found.format() != Registry.Format.PROTOBUF) {
            throw new IllegalArgumentException(
                    "message needs a Protobuf schema, and the " + READER + " is " + found.format());
        }
        if (validates) {
            throw new IllegalArgumentException("SQL does not validate when it decodes: leave validate out, or make the "
                    + "column by strata.spark_udfs.decode, which validates in Python workers");
        }
        List<String> origin = name.names("origin");
        try {
            Columns columns = columns(found, settings, message, name.names("columns"));
            return new DecodePlan(
                    found.format(),
                    columns.reader(),
                    columns.type().json(),
                    mode,
                    origin == null ? List.of() : origin,
                    null);
        } catch (RegistryFailure | UnusableSchema failure) {
            throw name.noSchema(READER, failure);
        }
    }

    private static Columns columns(
            Registry.Found found, RegistrySettings settings, String message, List<String> columns) {
        return switch (found.format()) {
            case AVRO -> {
                if (columns != null) {
                    throw new IllegalArgumentException("columns needs a Protobuf schema or a JSON Schema: of Avro, a "
                            + "query reads the fields that it uses");
                }
                yield avro(found.files(), false);
            }
            case PROTOBUF -> ProtoColumns.of(ProtoSchema.parseWithKnown(found.files()), message, columns);
            case JSON -> {
                Map<String, String> references = new LinkedHashMap<>();
                Registry.of(settings, found.format())
                        .references(found)
                        .forEach((reference, answer) ->
                                references.put(reference, answer.path("schema").asText()));
                yield JsonColumns.of(found.text(), references, columns);
            }
        };
    }

    private static Columns avro(List<String> texts, boolean membersByType) {
        DataType type = SparkTypes.of(SchemaTexts.withDefaults(texts), READER, membersByType);
        return new Columns(SchemaTexts.write(texts), type);
    }

    /** Return the plan that builds only some fields. */
    public DecodePlan only(Set<Integer> chosen) {
        return new DecodePlan(format, reader, type, mode, origin, new TreeSet<>(chosen));
    }

    /** Return the names of the fields to build. */
    public List<String> fieldNames() {
        return fields.stream()
                .map(position -> ((StructType) dataType()).fields()[position].name())
                .toList();
    }

    public DataType dataType() {
        return DataType.fromJson(type);
    }
}
