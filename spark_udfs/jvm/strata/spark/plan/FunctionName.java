package strata.spark.plan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.InflaterInputStream;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.client.Http.RegistryFailure;
import strata.spark.client.RegistrySettings;
import strata.spark.schema.Registry;

/**
 * The name of a function, which says what it reads: {@code orders-value?version=3&mode=PERMISSIVE}.
 *
 * <p>Values are percent-encoded where they hold {@code ?}, {@code &}, {@code =}, {@code %} or {@code +}.
 *
 * @param subject the subject; empty if an option names the schema
 * @param options what follows the question mark, by name
 */
public record FunctionName(String subject, Map<String, String> options) {
    /** What a frame that cannot be decoded, or a row that cannot be encoded, becomes. */
    public enum Mode {
        DEADLETTER,
        PERMISSIVE,
        FAILFAST
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    /** The newest version of plans that this class reads. Permanent views keep those of older versions. */
    private static final int VERSION = 3;

    public static FunctionName parse(String text) {
        int mark = text.indexOf('?');
        Map<String, String> options = new LinkedHashMap<>();
        if (mark >= 0) {
            for (String option : text.substring(mark + 1).split("&")) {
                int equals = option.indexOf('=');
                if (equals < 0) {
                    throw new IllegalArgumentException("expected NAME=VALUE after the question mark of " + text);
                }
                options.put(option.substring(0, equals), decoded(option.substring(equals + 1)));
            }
        }
        return new FunctionName(decoded(mark < 0 ? text : text.substring(0, mark)), options);
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
    }

    /** Return the name without the plan, for people. */
    public static String shown(String text) {
        int plan = text.indexOf("plan=");
        String shown = plan < 0 ? text : text.substring(0, plan - 1);
        return shown.isEmpty() ? "schema text" : shown;
    }

    /** Return whether the driver in Python has planned the function. */
    boolean hasPlan() {
        return options.containsKey("plan");
    }

    /**
     * Return the plan that the driver in Python has put into the name.
     *
     * @throws IOException if it is damaged
     * @throws UnsupportedOperationException if a newer version of Strata has made it
     */
    JsonNode plan() throws IOException {
        byte[] compressed = Base64.getUrlDecoder().decode(options.get("plan"));
        JsonNode plan = JSON.readTree(new InflaterInputStream(new ByteArrayInputStream(compressed)));
        int version = plan.path("version").asInt(1);
        if (version > VERSION) {
            throw new UnsupportedOperationException("the function has a plan of version " + version
                    + ", and this jar of Strata reads versions up to " + VERSION + ": bring the jar that made it");
        }
        return plan;
    }

    /** Return the files of the schema that the function reads with, those of Protobuf as descriptors. */
    public List<String> files(RegistrySettings settings) {
        try {
            return hasPlan()
                    ? texts(plan().path("files"))
                    : schema(settings, "reader schema").files();
        } catch (IOException | IllegalArgumentException error) {
            throw new IllegalArgumentException("not a function of Strata: call strata.spark_udfs.replay to make it");
        }
    }

    /** Return the texts of a list in a plan. */
    static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(one -> texts.add(one.asText()));
        return List.copyOf(texts);
    }

    /** Return the text of the schema that the function names, as the registry has it. */
    public String schemaText(RegistrySettings settings) {
        requireKnown(List.of("version", "id"));
        return schema(settings, "schema").text();
    }

    /**
     * Return the schema that the function names.
     *
     * @param role what the schema is, for errors
     * @throws IllegalArgumentException if the registry does not have it
     */
    public Registry.Found schema(RegistrySettings settings, String role) {
        String id = options.get("id");
        try {
            Registry registry = Registry.of(settings, Registry.Format.AVRO);
            return id == null ? registry.version(subject, version()) : registry.byId(Integer.parseInt(id));
        } catch (NumberFormatException notANumber) {
            throw new IllegalArgumentException("id is " + id + "; expected a number");
        } catch (RegistryFailure | UnusableSchema failure) {
            throw noSchema(role, failure);
        }
    }

    /** Return the error for a schema that cannot be had, or used. */
    IllegalArgumentException noSchema(String role, RuntimeException failure) {
        String id = options.get("id");
        String shown = id == null ? subject + " version " + version() : "schema id " + id;
        return new IllegalArgumentException("no " + role + " from " + shown + ": " + failure.getMessage());
    }

    private String version() {
        return options.getOrDefault("version", "latest");
    }

    // Options

    void requireKnown(List<String> allowed) {
        for (String option : options.keySet()) {
            if (!allowed.contains(option)) {
                throw new IllegalArgumentException(
                        "unknown option " + option + "; allowed are " + String.join(", ", allowed));
            }
        }
    }

    public Mode mode(Mode usual) {
        String mode = options.getOrDefault("mode", usual.name());
        try {
            return Mode.valueOf(mode);
        } catch (IllegalArgumentException unknown) {
            throw new IllegalArgumentException("mode is " + mode + "; allowed are " + Arrays.toString(Mode.values()));
        }
    }

    boolean isTrue(String option, boolean usual) {
        String value = options.getOrDefault(option, String.valueOf(usual));
        if (!value.equals("true") && !value.equals("false")) {
            throw new IllegalArgumentException(option + " is " + value + "; allowed are true, false");
        }
        return value.equals("true");
    }

    /** Return the names that an option lists, or null without it. */
    public List<String> names(String option) {
        String names = options.get(option);
        return names == null ? null : List.of(names.split(","));
    }
}
