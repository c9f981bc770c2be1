package strata.spark.json;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.json.JsonParts.JsonPart.Kind;
import strata.spark.schema.JsonDocuments;
import strata.spark.schema.JsonDocuments.JsonDialect;
import strata.spark.schema.JsonDocuments.Place;

/**
 * Reads a JSON Schema into its parts, by {@code compat/json_schema/loader.py}. The registry has checked the schema, so
 * only what columns depend on is read, and nothing is checked again.
 */
final class JsonParts {
    private static final Set<String> STRING_WORDS = Set.of("minLength", "maxLength", "pattern", "format");
    private static final Set<String> NUMBER_WORDS =
            Set.of("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf");
    private static final Set<String> OBJECT_WORDS = Set.of(
            "properties",
            "required",
            "minProperties",
            "maxProperties",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "patternProperties",
            "additionalProperties",
            "unevaluatedProperties",
            "propertyNames");
    private static final Set<String> ARRAY_WORDS = Set.of(
            "items",
            "prefixItems",
            "additionalItems",
            "minItems",
            "maxItems",
            "uniqueItems",
            "unevaluatedItems",
            "contains");
    private static final Set<String> MODERN_ONLY =
            Set.of("dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems");
    private static final Set<String> OLD_ONLY = Set.of("dependencies", "additionalItems");
    private static final Set<String> NOT_IN_DRAFT_4 = Set.of("propertyNames", "contains");
    private static final List<String> CONDITIONS = List.of("if", "then", "else");
    private static final int MAX_PARTS = 100_000;

    private record Waiting(JsonPart reference, Place place, boolean byHash) {}

    private final JsonDocuments documents;
    /** The targets of references, by document and by whether the reference ends with {@code #}, then by JSON value. */
    private final Map<String, Map<JsonNode, JsonPart>> targets = new TreeMap<>();

    private final Deque<Waiting> waiting = new ArrayDeque<>();
    private int loaded;

    private JsonParts(JsonDocuments documents) {
        this.documents = documents;
    }

    /**
     * Return the part that is the whole schema.
     *
     * @throws UnusableSchema if a reference leads nowhere, or the schema is too large
     */
    public static JsonPart of(JsonDocuments documents) {
        JsonParts parts = new JsonParts(documents);
        Place place = documents.root();
        JsonPart root = parts.part(place);
        if (place.dialect().isModern()) {
            parts.targets(place, false).put(place.value(), root.copy());
        }
        while (!parts.waiting.isEmpty()) {
            Waiting next = parts.waiting.pop();
            next.reference().target = parts.target(next.place(), next.byHash());
        }
        return root;
    }

    private Map<JsonNode, JsonPart> targets(Place place, boolean byHash) {
        return targets.computeIfAbsent(place.document() + (byHash ? "#" : ""), key -> new IdentityHashMap<>());
    }

    private JsonPart target(Place place, boolean byHash) {
        Map<JsonNode, JsonPart> known = targets(place, byHash);
        JsonPart part = place.value().isObject() ? known.get(place.value()) : null;
        if (part == null) {
            part = part(place);
            known.put(place.value(), part);
        }
        return part;
    }

    /** Return a schema inside another. */
    private JsonPart inner(JsonNode value, Place around) {
        String own = around.id(value);
        return part(around.at(value, own == null ? around.base() : JsonDocuments.joined(around.base(), own)));
    }

    private JsonPart part(Place place) {
        if (++loaded > MAX_PARTS) {
            throw new UnusableSchema("the schema has more than " + MAX_PARTS + " parts");
        }
        if (!place.value().isObject()) {
            return new JsonPart(Kind.OTHER);
        }
        boolean isModern = place.dialect().isModern();
        if (place.value().has("$ref") && !isModern) {
            return reference("$ref", place);
        }
        List<JsonPart> parts = parts(place);
        if (parts.size() < 2) {
            return parts.isEmpty() ? new JsonPart(Kind.OTHER) : parts.get(0);
        }
        parts.sort(Comparator.comparing(one -> one.kind != Kind.ALL && one.kind != Kind.ANY));
        return JsonPart.of(Kind.ALL, parts);
    }

    private List<JsonPart> parts(Place place) {
        JsonNode json = place.value();
        boolean isModern = place.dialect().isModern();
        List<JsonPart> parts = new ArrayList<>();
        if (isModern && json.has("$ref")) {
            parts.add(reference("$ref", place));
        }
        if (isModern && json.has("$dynamicRef")) {
            parts.add(reference("$dynamicRef", place));
        }
        for (String word : List.of("allOf", "anyOf", "oneOf")) {
            if (json.has(word)) {
                parts.add(JsonPart.of(word.equals("allOf") ? Kind.ALL : Kind.ANY, all(json.get(word), place)));
            }
        }
        Set<String> used = new HashSet<>();
        if (json.path("type").isArray()) {
            List<JsonPart> types = new ArrayList<>();
            json.get("type").forEach(one -> types.add(typed(one.asText(), place, used)));
            parts.add(JsonPart.of(Kind.ANY, types));
        } else if (json.has("type")) {
            parts.add(typed(json.get("type").asText(), place, used));
        }
        if (has(ARRAY_WORDS, place, used)) {
            parts.add(array(place));
        }
        if (has(OBJECT_WORDS, place, used)) {
            parts.add(object(place));
        }
        if (has(NUMBER_WORDS, place, used)) {
            parts.add(new JsonPart(Kind.NUMBER));
        }
        if (has(STRING_WORDS, place, used)) {
            parts.add(new JsonPart(Kind.STRING));
        }
        if (json.has("enum")) {
            List<JsonNode> values = new ArrayList<>();
            json.get("enum").forEach(values::add);
            parts.add(values(values));
        }
        if (json.has("not")) {
            parts.add(new JsonPart(Kind.OTHER));
        }
        if (json.has("const") && place.dialect() != JsonDialect.DRAFT_4) {
            parts.add(values(List.of(json.get("const"))));
        }
        boolean isConditional = isModern
                ? json.has("if")
                : place.dialect() == JsonDialect.DRAFT_7 && CONDITIONS.stream().anyMatch(json::has);
        if (isConditional) {
            parts.add(new JsonPart(Kind.OTHER));
        }
        return parts;
    }

    private static boolean has(Set<String> words, Place place, Set<String> used) {
        Set<String> unknown = place.dialect().isModern() ? OLD_ONLY : MODERN_ONLY;
        boolean isDraft4 = place.dialect() == JsonDialect.DRAFT_4;
        return words.stream()
                .anyMatch(word -> place.value().has(word)
                        && !used.contains(word)
                        && !unknown.contains(word)
                        && !(isDraft4 && NOT_IN_DRAFT_4.contains(word)));
    }

    private JsonPart reference(String word, Place place) {
        String reference = place.value().get(word).asText();
        JsonPart part = new JsonPart(Kind.REFERENCE);
        boolean byHash = reference.endsWith("#") && !place.dialect().isModern();
        waiting.push(new Waiting(part, documents.resolve(reference, place).place(), byHash));
        return part;
    }

    private JsonPart typed(String type, Place place, Set<String> used) {
        switch (type) {
            case "string":
                used.addAll(STRING_WORDS);
                return new JsonPart(Kind.STRING);
            case "integer", "number":
                used.addAll(NUMBER_WORDS);
                return new JsonPart(type.equals("integer") ? Kind.INTEGER : Kind.NUMBER);
            case "object":
                used.addAll(OBJECT_WORDS);
                return object(place);
            case "array":
                used.addAll(ARRAY_WORDS);
                return array(place);
            case "boolean":
                return new JsonPart(Kind.BOOLEAN);
            case "null":
                return new JsonPart(Kind.NULL);
            default:
                throw new UnusableSchema("unknown type " + type);
        }
    }

    private JsonPart object(Place place) {
        JsonPart part = new JsonPart(Kind.OBJECT);
        String name = place.dialect().isModern() ? null : place.dialect().idKeyword(); // which is then no property
        place.value().path("properties").properties().forEach(one -> {
            if (!one.getKey().equals(name) || one.getValue().isObject()) {
                part.properties.put(one.getKey(), inner(one.getValue(), place));
            }
        });
        part.branches = all(place.value().path("patternProperties"), place);
        addRest(part, "additionalProperties", place);
        return part;
    }

    private JsonPart array(Place place) {
        JsonPart part = new JsonPart(Kind.ARRAY);
        JsonNode json = place.value();
        boolean isModern = place.dialect().isModern();
        JsonNode first = json.path(isModern ? "prefixItems" : "items");
        if (first.isArray()) {
            part.branches = all(first, place);
        } else if (!isModern && json.has("items")) {
            part.items = inner(first, place);
        }
        addRest(part, isModern ? "items" : "additionalItems", place);
        if (isModern && part.branches == null) {
            part.items = part.rest;
        }
        return part;
    }

    private void addRest(JsonPart part, String word, Place place) {
        JsonNode rest = place.value().path(word);
        part.isOpen = rest.isMissingNode() || rest.isBoolean() && rest.asBoolean();
        part.rest = part.isOpen || rest.isBoolean() ? null : inner(rest, place);
    }

    private List<JsonPart> all(JsonNode schemas, Place place) {
        List<JsonPart> parts = new ArrayList<>();
        schemas.forEach(one -> parts.add(inner(one, place)));
        return parts;
    }

    private static JsonPart values(List<JsonNode> values) {
        JsonPart part = new JsonPart(Kind.VALUES);
        part.values = values.stream().map(JsonParts::kind).distinct().toList();
        return part;
    }

    private static Kind kind(JsonNode value) {
        return switch (value.getNodeType()) {
            case STRING -> Kind.STRING;
            case BOOLEAN -> Kind.BOOLEAN;
            case NUMBER -> value.isIntegralNumber() ? Kind.INTEGER : Kind.NUMBER;
            case NULL -> Kind.NULL;
            default -> Kind.OTHER;
        };
    }

    /**
     * A part of a JSON Schema, as far as columns depend on it, by {@code compat/json_schema/model.py}. Parts compare by
     * identity: one that is reached twice through {@code $ref} is one part.
     */
    static final class JsonPart {
        public enum Kind {
            STRING,
            INTEGER,
            NUMBER,
            BOOLEAN,
            NULL,
            OBJECT,
            ARRAY,
            VALUES,
            ALL,
            ANY,
            REFERENCE,
            OTHER
        }

        public final Kind kind;
        /** The branches of ALL and ANY, the first items of an ARRAY (null unless it names them), an OBJECT's patterns. */
        public List<JsonPart> branches;
        /** The properties of an OBJECT. */
        public Map<String, JsonPart> properties = new LinkedHashMap<>();
        /** What else an OBJECT or ARRAY may have; null if {@code isOpen} says it. */
        public JsonPart rest;
        /** Whether an OBJECT or ARRAY may have anything else. */
        public boolean isOpen;
        /** The schema of every item of an ARRAY, or null. */
        public JsonPart items;
        /** The kinds of VALUES. */
        public List<Kind> values = List.of();
        /** What a REFERENCE means; null until it is known. */
        public JsonPart target;

        JsonPart(Kind kind) {
            this.kind = kind;
        }

        public static JsonPart of(Kind kind, List<JsonPart> branches) {
            JsonPart part = new JsonPart(kind);
            part.branches = branches;
            return part;
        }

        /** Return another part with the same content. */
        public JsonPart copy() {
            JsonPart copy = of(kind, branches);
            copy.properties = properties;
            copy.rest = rest;
            copy.isOpen = isOpen;
            copy.items = items;
            copy.values = values;
            copy.target = target;
            return copy;
        }
    }
}
