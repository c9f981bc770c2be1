package strata.spark.schema;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.Function;
import org.apache.avro.Schema;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.client.Http;
import strata.spark.client.Http.RegistryFailure;
import strata.spark.client.RegistrySettings;
import strata.spark.frame.FrameHeader;
import strata.spark.frame.FrameHeader.Refusal;

/**
 * Cache of writer schemas by id, GUID or version in AWS Glue, shared by all tasks of a process: one request for each,
 * however many tasks need it at once.
 *
 * <p>That an id is unknown is cached for some seconds; a failure is not cached.
 */
public final class Registry {
    /**
     * What is known of an id.
     *
     * @param schema an Avro {@link Schema} or a {@link ProtoSchema}; null if frames with the id cannot be decoded
     * @param reason why not, short
     * @param message why not, in full
     * @param until nanoseconds on the clock after which to ask again; 0 for never
     */
    public record Writer(Object schema, String reason, String message, long until) {
        boolean isStale() {
            return until != 0 && System.nanoTime() - until > 0;
        }
    }

    /**
     * A schema that the registry has.
     *
     * @param format its format
     * @param id its id
     * @param guid its GUID, null if the registry gives none
     * @param text its text
     * @param files its text, or for Protobuf its descriptor, after those of the schemas it refers to
     * @param rules the names of the rules that clients run before they write
     * @param body the registry's answer
     * @param context the {@code :.context:} of its subject, to which references without one belong
     */
    public record Found(
            Format format,
            int id,
            String guid,
            String text,
            List<String> files,
            List<String> rules,
            JsonNode body,
            String context) {}

    /** A format of payloads, and how its schemas are asked for. */
    public enum Format {
        AVRO("", SchemaTexts::parse),
        PROTOBUF("format=serialized", ProtoSchema::parse),
        JSON("", texts -> texts) {
            @Override
            boolean needsReferences() {
                return false;
            }
        };

        private final String query;

        @SuppressWarnings("ImmutableEnumChecker") // each is a method
        private final Function<List<String>, Object> parser;

        Format(String query, Function<List<String>, Object> parser) {
            this.query = query;
            this.parser = parser;
        }

        private String asked(String path) {
            return query.isEmpty() ? path : path + (path.contains("?") ? "&" : "?") + query;
        }

        /** Return whether payloads cannot be read without the schemas that their schema refers to. */
        boolean needsReferences() {
            return true;
        }
    }

    private record Key(RegistrySettings settings, Format format) {}

    private static final Map<Key, Registry> OPEN = new ConcurrentHashMap<>();
    private static final int UNKNOWN_SCHEMA = 40403;
    private static final int NOT_FOUND = 404;
    private static final Set<String> CLIENT_SIDES = Set.of("ALL", "CLIENT", "null");
    private static final int MAX_REFERENCES = 1000;
    private static final int MAX_DEPTH = 100;

    private final RegistrySettings settings;
    private final Format format;
    private final Http http;
    private final Map<Object, FutureTask<Writer>> known = new ConcurrentHashMap<>();

    private Registry(Key key) {
        this.settings = key.settings();
        this.format = key.format();
        this.http = new Http(settings);
    }

    public static Registry of(RegistrySettings settings, Format format) {
        return OPEN.computeIfAbsent(new Key(settings, format), Registry::new);
    }

    /**
     * Return the writer schema that frames name.
     *
     * @param name an Integer, a UUID or a version in Glue
     * @throws RegistryFailure if the registry does not answer, or not as a registry
     */
    public Writer schema(Object name) {
        FutureTask<Writer> mine = new FutureTask<>(() -> look(name));
        while (true) {
            FutureTask<Writer> task = known.putIfAbsent(name, mine);
            if (task == null) {
                if (known.size() > settings.cacheSize()) {
                    known.keySet().removeIf(other -> !other.equals(name));
                }
                task = mine;
                mine.run();
            }
            try {
                Writer writer = task.get();
                if (task == mine || !writer.isStale()) {
                    return writer;
                }
                known.remove(name, task);
            } catch (ExecutionException failed) {
                known.remove(name, task);
                if (failed.getCause() instanceof RegistryFailure failure) {
                    throw new RegistryFailure(Refusal.named(name) + " could not be looked up: " + failure.getMessage());
                }
                throw new IllegalStateException(failed.getCause());
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new RegistryFailure("the task was stopped while it waited for " + Refusal.named(name));
            }
        }
    }

    /** Return a version of a subject. */
    public Found version(String subject, String version) {
        String path = "/subjects/" + encoded(subject) + "/versions/" + encoded(version);
        JsonNode schema = answered(path);
        return found(path, schema, schema.path("id").asInt(), contextOf(subject));
    }

    /** Return the schema with an id. */
    public Found byId(int id) {
        String path = "/schemas/ids/" + id;
        return found(path, answered(path), id, "");
    }

    /** Return the GUID of the schema with an id, which is with each of its versions; null if the registry gives none. */
    public String guid(int id) {
        JsonNode version = answered("/schemas/ids/" + id + "/versions").path(0);
        return version.isMissingNode()
                ? null
                : answered(path(version) + "?deleted=true").path("guid").textValue();
    }

    private JsonNode answered(String path) {
        Http.Answer answer = http.get(path);
        require(answer);
        return answer.body();
    }

    /** Return a schema of any format, of which the answer holds the text. */
    private Found found(String path, JsonNode schema, int id, String context) {
        String type = schema.path("schemaType").asText("AVRO");
        Format actual = Arrays.stream(Format.values())
                .filter(one -> one.name().equals(type))
                .findFirst()
                .orElseThrow(() -> new UnusableSchema("its format is " + type));
        Registry registry = of(settings, actual);
        String exact = schema.has("version") ? path(schema) : path; // `latest` may be another one by now
        JsonNode own = actual.query.isEmpty() ? schema : answered(actual.asked(exact));
        List<String> files = registry.texts(path, own, context);
        String guid = schema.path("guid").textValue();
        List<String> rules = writeRules(schema.path("ruleSet"));
        return new Found(actual, id, guid, text(path, schema), files, rules, schema, context);
    }

    /**
     * Return the registry's answers for the schemas that a schema refers to, directly or not, by the names of the
     * references; each comes after those it refers to itself. Of two with one name, the first counts.
     */
    public Map<String, JsonNode> references(Found found) {
        Map<String, JsonNode> named = new LinkedHashMap<>();
        of(settings, found.format()).read(named, found.body(), found.context(), new HashSet<>(), 0);
        return named;
    }

    private static List<String> writeRules(JsonNode set) {
        List<String> names = new ArrayList<>();
        if (CLIENT_SIDES.contains(set.path("enableAt").asText("ALL"))) {
            for (String kind : List.of("migrationRules", "domainRules", "encodingRules")) {
                for (JsonNode rule : set.path(kind)) {
                    String mode = rule.path("mode").asText("WRITEREAD");
                    if (mode.startsWith("WRITE") && !rule.path("disabled").asBoolean()) {
                        names.add(rule.path("name").asText());
                    }
                }
            }
        }
        return names;
    }

    private static String encoded(String segment) {
        return URLEncoder.encode(segment, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private Writer look(Object name) {
        String asked = path(name);
        if (asked == null) {
            return unknown(name);
        }
        Http.Answer answer = http.get(format.asked(asked));
        if (answer.errorCode() == UNKNOWN_SCHEMA) {
            return unknown(name);
        }
        require(answer);
        String type = answer.body().path("schemaType").asText("AVRO");
        if (!type.equals(format.name())) {
            return new Writer(null, "writer schema is " + type, "writer schema is " + type, 0);
        }
        try {
            return new Writer(format.parser.apply(texts(asked, answer.body(), "")), "", "", 0);
        } catch (RegistryFailure failure) {
            throw failure;
        } catch (RuntimeException | StackOverflowError unusable) {
            // The parser rejects invalid schema texts with many kinds of exceptions.
            return new Writer(null, "unusable writer schema", "unusable writer schema: " + unusable.getMessage(), 0);
        }
    }

    /** Return the path of the schema that frames name; null if the registry does not know a version in Glue. */
    private String path(Object name) {
        if (!(name instanceof FrameHeader.GlueVersion)) {
            return (name instanceof UUID ? "/schemas/guids/" : "/schemas/ids/") + name;
        }
        Http.Answer answer = http.get("/v1/glue/" + name);
        if (answer.status() == NOT_FOUND) { // another registry lacks the route
            return null;
        }
        require(answer);
        JsonNode version = answer.body().path(0);
        return version.isMissingNode() ? null : path(version) + "?deleted=true";
    }

    private static String path(JsonNode version) {
        return path(version.path("subject").asText(), version);
    }

    private static String path(String subject, JsonNode version) {
        return "/subjects/" + encoded(subject) + "/versions/"
                + version.path("version").asInt();
    }

    /** Return the {@code :.context:} in front of a qualified subject; empty for the default context. */
    private static String contextOf(String subject) {
        int end = subject.startsWith(":.") ? subject.indexOf(':', 2) : -1;
        return subject.substring(0, end + 1);
    }

    private Writer unknown(Object name) {
        long until = System.nanoTime() + (long) (settings.missingSeconds() * 1e9);
        String reason = "unknown " + Refusal.kind(name);
        return new Writer(null, reason, reason, until == 0 ? 1 : until);
    }

    /** Return the texts of a schema, after those of its references if payloads need them. */
    private List<String> texts(String asked, JsonNode schema, String context) {
        Map<String, JsonNode> named = new LinkedHashMap<>();
        if (format.needsReferences()) {
            read(named, schema, context, new HashSet<>(), 0);
        }
        List<String> texts = new ArrayList<>();
        named.forEach((name, one) -> texts.add(one.path("schema").asText()));
        texts.add(text(asked, schema));
        return texts;
    }

    /** Collect the answers for a schema's references, as {@link #references} returns them. */
    private void read(Map<String, JsonNode> named, JsonNode schema, String context, Set<String> seen, int depth) {
        for (JsonNode reference : schema.path("references")) {
            String name = reference.path("name").asText();
            if (!seen.add(name)) {
                continue;
            }
            if (depth >= MAX_DEPTH || seen.size() > MAX_REFERENCES) {
                throw new UnusableSchema("too many references, or nested too deeply");
            }
            String subject = reference.path("subject").asText();
            String qualified = contextOf(subject).isEmpty() ? context + subject : subject;
            String path = path(qualified, reference);
            Http.Answer answer = http.get(format.asked(path + "?deleted=true"));
            if (answer.status() == NOT_FOUND) {
                throw new UnusableSchema("the registry does not have a reference: " + answer.message());
            }
            require(answer);
            text(path, answer.body());
            read(named, answer.body(), contextOf(qualified), seen, depth + 1);
            named.put(name, answer.body());
        }
    }

    private static void require(Http.Answer answer) {
        if (answer.status() != 200) {
            throw new RegistryFailure(answer.message());
        }
    }

    private static String text(String asked, JsonNode body) {
        if (!body.path("schema").isTextual()) {
            throw new RegistryFailure("the answer to GET " + asked + " is not understood; is it a schema registry?");
        }
        return body.path("schema").asText();
    }
}
