package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.apache.avro.Schema;

/**
 * Cache of writer schemas by id or GUID, shared by all tasks of a process: one request for each id, however many tasks
 * need it at once.
 *
 * <p>That an id is unknown is cached for some seconds; a failure is not cached.
 */
final class Registry {
    /**
     * What is known of an id.
     *
     * @param schema null if frames with the id cannot be decoded
     * @param reason why not, short
     * @param message why not, in full
     * @param until nanoseconds on the clock after which to ask again; 0 for never
     */
    record Writer(Schema schema, String reason, String message, long until) {
        boolean isStale() {
            return until != 0 && System.nanoTime() - until > 0;
        }
    }

    private static final Map<RegistrySettings, Registry> OPEN = new ConcurrentHashMap<>();
    private static final int UNKNOWN_SCHEMA = 40403;
    private static final int MAX_REFERENCES = 1000;
    private static final int MAX_DEPTH = 100;

    private final RegistrySettings settings;
    private final Http http;
    private final Map<Object, FutureTask<Writer>> known = new ConcurrentHashMap<>();

    private Registry(RegistrySettings settings) {
        this.settings = settings;
        this.http = new Http(settings);
    }

    static Registry of(RegistrySettings settings) {
        return OPEN.computeIfAbsent(settings, Registry::new);
    }

    /**
     * Return the writer schema of an id or a GUID.
     *
     * @param name an Integer or a UUID
     * @throws RegistryFailure if the registry does not answer, or not as a registry
     */
    Writer schema(Object name) {
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

    private Writer look(Object name) {
        boolean isGuid = name instanceof UUID;
        String asked = (isGuid ? "/schemas/guids/" : "/schemas/ids/") + name;
        Http.Answer answer = http.get(asked);
        if (answer.errorCode() == UNKNOWN_SCHEMA) {
            long until = System.nanoTime() + (long) (settings.missingSeconds() * 1e9);
            String reason = isGuid ? "unknown schema guid" : "unknown schema id";
            return new Writer(null, reason, reason, until == 0 ? 1 : until);
        }
        require(answer);
        String type = answer.body().path("schemaType").asText("AVRO");
        if (!type.equals("AVRO")) {
            return new Writer(null, "writer schema is " + type, "writer schema is " + type, 0);
        }
        try {
            List<String> texts = new ArrayList<>();
            read(texts, asked, answer.body(), new HashSet<>(), 0);
            return new Writer(SchemaTexts.parse(texts), "", "", 0);
        } catch (RegistryFailure failure) {
            throw failure;
        } catch (RuntimeException | StackOverflowError unusable) {
            // The parser rejects invalid schema texts with many kinds of exceptions.
            return new Writer(null, "unusable writer schema", "unusable writer schema: " + unusable.getMessage(), 0);
        }
    }

    /** Collect the texts of a schema and its references; each comes after those it refers to itself. */
    private void read(List<String> texts, String asked, JsonNode schema, Set<String> seen, int depth) {
        for (JsonNode reference : schema.path("references")) {
            String subject = reference.path("subject").asText();
            String path = "/subjects/" + URLEncoder.encode(subject, StandardCharsets.UTF_8).replace("+", "%20")
                + "/versions/" + reference.path("version").asInt();
            if (!seen.add(path)) {
                continue;
            }
            if (depth >= MAX_DEPTH || seen.size() > MAX_REFERENCES) {
                throw new UnusableSchema("too many references, or nested too deeply");
            }
            Http.Answer answer = http.get(path + "?deleted=true");
            if (answer.status() == 404) {
                throw new UnusableSchema("the registry does not have a reference: " + answer.message());
            }
            require(answer);
            read(texts, path, answer.body(), seen, depth + 1);
        }
        texts.add(text(asked, schema));
    }

    private static void require(Http.Answer answer) {
        if (answer.status() != 200) {
            throw new RegistryFailure(answer.message());
        }
    }

    private static String text(String asked, JsonNode body) {
        if (!body.path("schema").isTextual()) {
            throw new RegistryFailure(
                "the answer to GET " + asked + " is not understood; is it a schema registry?");
        }
        return body.path("schema").asText();
    }
}
