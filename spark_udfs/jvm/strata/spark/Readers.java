package strata.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;

/** Makes plans of functions that are named by a subject, without a driver in Python. */
final class Readers {
    private static final List<String> OPTIONS =
        List.of("version", "id", "mode", "origin", "message", "columns", "validate");
    private static final String READER = "reader schema";
    private static final ObjectMapper JSON = new ObjectMapper();

    private Readers() {}

    /**
     * Return the plan of a function; the registry is asked for its reader schema.
     *
     * @throws IllegalArgumentException if the name says what cannot be done, or the registry does not have the schema
     */
    static Plan plan(FunctionName name, RegistrySettings settings) {
        requireKnown(name, OPTIONS);
        Plan.Mode mode = mode(name, "DEADLETTER");
        boolean validates = isTrue(name, "validate", false);
        Registry.Found found = found(name, settings, READER);
        String message = name.options().get("message");
        if (message != null && found.format() != Registry.Format.PROTOBUF) {
            throw new IllegalArgumentException(
                "message needs a Protobuf schema, and the " + READER + " is " + found.format());
        }
        if (validates) {
            throw new IllegalArgumentException("SQL does not validate when it decodes: leave validate out, or make the "
                + "column by strata.spark_udfs.decode, which validates in Python workers");
        }
        try {
            Columns columns = columns(found, settings, message, names(name, "columns"));
            return new Plan(found.format(), columns.reader(), columns.type().json(), mode, origin(name), null);
        } catch (RegistryFailure | UnusableSchema failure) {
            throw new IllegalArgumentException("no " + READER + " from " + shown(name) + ": " + failure.getMessage());
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
                yield new Columns(write(found.files()), SparkTypes.of(SchemaTexts.parse(found.files()), READER));
            }
            case PROTOBUF -> ProtoColumns.of(EncodeMessages.parse(found.files()), message, columns);
            case JSON -> {
                Map<String, String> references = new LinkedHashMap<>();
                Registry.of(settings, found.format()).references(found).forEach(
                    (name, answer) -> references.put(name, answer.path("schema").asText()));
                yield JsonColumns.of(found.text(), references, columns);
            }
        };
    }

    static void requireKnown(FunctionName name, List<String> allowed) {
        for (String option : name.options().keySet()) {
            if (!allowed.contains(option)) {
                throw new IllegalArgumentException(
                    "unknown option " + option + "; allowed are " + String.join(", ", allowed));
            }
        }
    }

    /** Return the text of a schema, as the registry has it. */
    static String text(FunctionName name, RegistrySettings settings) {
        requireKnown(name, List.of("version", "id"));
        return found(name, settings, "schema").text();
    }

    private static String shown(FunctionName name) {
        String id = name.options().get("id");
        return id == null
            ? name.subject() + " version " + name.options().getOrDefault("version", "latest") : "schema id " + id;
    }

    /**
     * Return the schema that a function names.
     *
     * @throws IllegalArgumentException if the registry does not have it
     */
    static Registry.Found found(FunctionName name, RegistrySettings settings, String role) {
        String id = name.options().get("id");
        String version = name.options().getOrDefault("version", "latest");
        try {
            Registry registry = Registry.of(settings, Registry.Format.AVRO);
            return id == null ? registry.version(name.subject(), version) : registry.byId(Integer.parseInt(id));
        } catch (NumberFormatException notANumber) {
            throw new IllegalArgumentException("id is " + id + "; expected a number");
        } catch (RegistryFailure | UnusableSchema failure) {
            throw new IllegalArgumentException("no " + role + " from " + shown(name) + ": " + failure.getMessage());
        }
    }

    /** Parse texts written by {@link #write}, and encode their defaults, or parse one schema text. */
    static Schema read(String reader) {
        return reader.startsWith(MARK) ? Defaults.encoded(parsed(reader)) : parsed(reader);
    }

    /** Parse texts written by {@link #write}, or one schema text. */
    static Schema parsed(String schema) {
        if (!schema.startsWith(MARK)) {
            return SchemaTexts.parse(List.of(schema));
        }
        try {
            return SchemaTexts.parse(Arrays.asList(JSON.readValue(schema.substring(MARK.length()), String[].class)));
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    private static final String MARK = "texts:";

    /** Return Avro's texts as one. */
    static String write(List<String> texts) {
        try {
            return MARK + JSON.writeValueAsString(texts);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    static Plan.Mode mode(FunctionName name, String usual) {
        String mode = name.options().getOrDefault("mode", usual);
        try {
            return Plan.Mode.valueOf(mode);
        } catch (IllegalArgumentException unknown) {
            throw new IllegalArgumentException(
                "mode is " + mode + "; allowed are " + Arrays.toString(Plan.Mode.values()));
        }
    }

    private static List<String> origin(FunctionName name) {
        List<String> origin = names(name, "origin");
        return origin == null ? List.of() : origin;
    }

    /** Return the names that an option lists, or null without it. */
    private static List<String> names(FunctionName name, String option) {
        String names = name.options().get(option);
        return names == null ? null : List.of(names.split(","));
    }

    static boolean isTrue(FunctionName name, String option, boolean usual) {
        String value = name.options().getOrDefault(option, String.valueOf(usual));
        if (!value.equals("true") && !value.equals("false")) {
            throw new IllegalArgumentException(option + " is " + value + "; allowed are true, false");
        }
        return value.equals("true");
    }
}
