package strata.spark.valid;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import strata.spark.schema.JsonDocuments;
import strata.spark.schema.JsonDocuments.JsonUris;
import strata.spark.schema.JsonDocuments.Unresolved;

/**
 * A JSON Schema and what it refers to, by the URIs that its {@code $ref}s resolve to: what
 * {@code serdes/json_schema/serializer.py} does for the validator of Python.
 */
public final class ValidDocuments {
    /**
     * A schema as the registry has it.
     *
     * @param text its text
     * @param references the names of the schemas that it refers to
     */
    public record Source(String text, List<String> references) {
        /** Return the schema of a registry's answer. */
        public static Source of(JsonNode answer) {
            return new Source(
                    answer.path("schema").asText(), answer.path("references").findValuesAsText("name"));
        }
    }

    /** A part of a document. */
    record At(String uri, List<String> pointer, JsonNode tree) {
        At down(String... steps) {
            List<String> longer = new ArrayList<>(pointer);
            JsonNode found = tree;
            for (String step : steps) {
                found = !found.isArray()
                        ? found.path(step)
                        : INDEX.matcher(step).matches()
                                ? found.path(Integer.parseInt(step))
                                : MissingNode.getInstance();
                longer.add(step);
            }
            return new At(uri, longer, found);
        }

        /** Return where a keyword is, or the part itself. */
        public String rule(String... keyword) {
            List<String> steps = new ArrayList<>(pointer);
            steps.addAll(List.of(keyword));
            return steps.isEmpty() ? "false" : String.join("/", steps);
        }

        /** Return a name that no other part has. */
        public String name() {
            List<String> steps = pointer.stream()
                    .map(one -> one.replace("~", "~0").replace("/", "~1"))
                    .toList();
            return uri + "#/" + String.join("/", steps);
        }
    }

    private static final JsonMapper JSON = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();
    private static final String BASE = "http://registry.invalid/";
    private static final Pattern DIALECT =
            Pattern.compile("https?://json-schema\\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?");
    private static final String USUAL_DRAFT = "draft-07";
    private static final Pattern INDEX = Pattern.compile("[0-9]{1,9}");
    private static final Pattern SCHEME = Pattern.compile("[A-Za-z][A-Za-z0-9+.-]*:");
    private static final Pattern EMPTY_STEP = Pattern.compile("(?!" + SCHEME + "|//)[^?#]*//");
    private static final int MAX_DOCUMENTS = 2000;

    private final Map<String, JsonNode> documents = new LinkedHashMap<>();
    private final Map<String, Source> named;
    private final JsonDocuments references;

    /**
     * @param named the schemas that it refers to, directly or not, by the names of the references
     * @throws OnlyInPython if a schema is not one
     */
    public ValidDocuments(Source schema, Map<String, Source> named) {
        this.named = named;
        documents.put(BASE, parsed(schema.text()));
        place(schema, BASE);
        references = JsonDocuments.placed(documents, this::base);
        for (JsonNode document : documents.values()) {
            if (!ValidShapes.isSchema(document)) {
                throw unusable();
            }
        }
    }

    public static OnlyInPython unusable() {
        return new OnlyInPython("a JSON Schema that cannot be used");
    }

    private static JsonNode parsed(String text) {
        try {
            JsonNode tree = JSON.readTree(text);
            if (StandardCharsets.UTF_8.newEncoder().canEncode(tree.toString())) { // else a half of a surrogate pair
                return tree;
            }
        } catch (JsonProcessingException invalid) {
            // as below
        }
        throw unusable();
    }

    /** Add what a schema refers to under the URIs that its references resolve to. */
    private void place(Source schema, String uri) {
        Set<String> bases = new LinkedHashSet<>(List.of(uri));
        bases.add(base(uri)); // validators differ on the base URI
        for (String name : schema.references()) {
            Source target = named.get(name);
            if (target == null) {
                throw unusable();
            }
            for (String base : bases) {
                String place = joined(base, name);
                if (!documents.containsKey(place)) {
                    if (documents.size() > MAX_DOCUMENTS) {
                        throw unusable();
                    }
                    documents.put(place, parsed(target.text()));
                    place(target, place);
                }
            }
        }
    }

    /** Return the base URI of a document. */
    private String base(String uri) {
        JsonNode own = documents.get(uri).path("$id");
        JsonNode stated = own.isMissingNode() ? documents.get(uri).path("id") : own; // as draft 4 calls it
        return stated.isTextual() ? joined(uri, stated.asText()) : uri;
    }

    /**
     * Return what a reference means in a document.
     *
     * @throws OnlyInPython if it has empty steps, which Python drops and its validator does not, or is relative to a URI
     *     without a hierarchy
     */
    private static String joined(String base, String reference) {
        String joined = JsonUris.join(base, reference);
        if (!SCHEME.matcher(joined).lookingAt() || EMPTY_STEP.matcher(reference).lookingAt()) {
            throw unusable();
        }
        return joined;
    }

    public At root() {
        return new At(BASE, List.of(), documents.get(BASE));
    }

    /** Return the drafts of the documents; a missing or unknown one is draft 7, as in the registry. */
    Set<String> drafts() {
        Set<String> drafts = new HashSet<>();
        for (JsonNode document : documents.values()) {
            Matcher dialect = DIALECT.matcher(document.path("$schema").asText());
            drafts.add(dialect.matches() ? dialect.group(1) : USUAL_DRAFT);
        }
        return drafts;
    }

    /** Return whether a part of a document has a base URI of its own. */
    boolean hasResources() {
        return documents.values().stream().anyMatch(one -> hasResource(one, true));
    }

    private static boolean hasResource(JsonNode tree, boolean isRoot) {
        if (tree.has("$id") && !isRoot) {
            return true;
        }
        for (JsonNode part : tree) {
            if (hasResource(part, false)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Return the part that a reference names.
     *
     * @throws OnlyInPython if it is not found, or only an anchor leads to it
     */
    public At target(At at, String reference) {
        String uri = reference.startsWith("#") ? "" : JsonUris.document(joined(base(at.uri()), reference));
        String fragment = JsonUris.fragment(reference);
        if (!fragment.isEmpty() && !fragment.startsWith("/")) {
            throw OnlyInPython.keyword("$ref", "to an anchor");
        }
        JsonDocuments.Target target;
        try {
            target = references.resolve(uri + "#" + fragment, references.placed(at.uri()));
        } catch (Unresolved missing) {
            String how = fragment.isEmpty() ? "to another document" : "to an anchor";
            throw OnlyInPython.keyword("$ref", missing.hasDocument() ? "that is unusual" : how);
        }
        String found = references.whole(target.place()).base();
        return new At(found, target.steps(), target.place().value());
    }

    /** A part of a schema that only Python workers support; the message names it. */
    public static final class OnlyInPython extends RuntimeException {
        private static final long serialVersionUID = 1L;

        public OnlyInPython(String part) {
            super(part);
        }

        /** Return the error for a keyword by which only Python workers validate. */
        public static OnlyInPython keyword(String keyword, String how) {
            return new OnlyInPython("JSON with validation by `" + keyword + "`" + (how.isEmpty() ? "" : " ") + how);
        }
    }
}
