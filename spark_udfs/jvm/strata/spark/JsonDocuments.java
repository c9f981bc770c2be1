package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Finds what a {@code $ref} means: in its own document, a reference or a known metaschema, by
 * {@code compat/json_schema/documents.py}. Nothing is fetched.
 */
final class JsonDocuments {
    /** A schema in a document; {@code base} is the base of relative URIs. */
    record Place(JsonNode value, String base, int document, JsonDialect dialect) {
        Place at(JsonNode other, String otherBase) {
            return new Place(other, otherBase, document, dialect);
        }

        /** Return the id of a value, or null. */
        String id(JsonNode other) {
            return other.path(dialect.idKeyword()).textValue();
        }
    }

    /** The metaschemas that json-schema.org publishes; the build of the jar adds them. */
    private static final String METASCHEMAS = "metaschemas.json";

    private static final String METASCHEMA_HOST = "json-schema.org/";
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Keywords with values, not schemas. */
    private static final Set<String> VALUES = Set.of("enum", "const", "default", "examples");
    private static final Set<String> MODERN_VALUES = Set.of("enum", "const");

    private final List<Place> documents = new ArrayList<>();
    private final Map<String, Place> names = new HashMap<>();

    /**
     * @param root the schema
     * @param references the schemas that it refers to, directly or not, by name
     */
    JsonDocuments(JsonNode root, Map<String, JsonNode> references) {
        add(root, "", JsonDialect.of(root));
        references.forEach((name, one) -> add(one, name, JsonDialect.within(one, root().dialect())));
        for (Place whole : documents) {
            if (whole != root()) {
                names.putIfAbsent(withoutHash(whole.base()), whole);
                names.putIfAbsent(withoutHash(JsonUris.join(root().base(), whole.base())), whole);
            }
            addNames(whole);
        }
    }

    private static String withoutHash(String name) {
        return name.endsWith("#") ? name.substring(0, name.length() - 1) : name;
    }

    private Place add(JsonNode root, String name, JsonDialect dialect) {
        String own = root.path(dialect.idKeyword()).textValue();
        String uri = !name.isEmpty() || own == null ? name : JsonUris.document(own);
        Place whole = new Place(root, uri, documents.size(), dialect);
        documents.add(whole);
        return whole;
    }

    /** Return the schema itself. */
    Place root() {
        return documents.get(0);
    }

    /** Add every schema of a document that has a name. */
    private void addNames(Place whole) {
        boolean isModern = whole.dialect().isModern();
        Set<String> values = isModern ? MODERN_VALUES : VALUES;
        Deque<Place> stack = new ArrayDeque<>(List.of(whole));
        while (!stack.isEmpty()) {
            Place place = stack.pop();
            JsonNode value = place.value();
            if (value.isArray()) {
                value.forEach(item -> stack.push(place.at(item, place.base())));
            }
            if (!value.isObject()) {
                continue;
            }
            String own = place.id(value);
            boolean isNamed = own != null && (isModern || !value.has("$ref"));
            Place inner = isNamed ? place.at(value, joined(place.base(), own)) : place;
            if (isNamed) {
                String fragment = JsonUris.fragment(own);
                names.putIfAbsent(inner.base() + (fragment.isEmpty() ? "" : "#" + fragment), inner);
                if (!fragment.isEmpty()) {
                    names.putIfAbsent("#" + fragment, inner);
                }
            }
            for (String keyword : List.of("$anchor", "$dynamicAnchor")) {
                if (isModern && value.path(keyword).isTextual()) {
                    names.putIfAbsent(inner.base() + "#" + value.path(keyword).asText(), inner);
                }
            }
            value.fields().forEachRemaining(one -> {
                if (!values.contains(one.getKey())) {
                    stack.push(inner.at(one.getValue(), inner.base()));
                }
            });
        }
    }

    /** Return the base URI inside a schema with an id. */
    static String joined(String base, String own) {
        String target = JsonUris.document(own);
        return target.isEmpty() ? base : JsonUris.join(base, target);
    }

    /**
     * Return the schema that a reference means at a place.
     *
     * @throws UnusableSchema if there is none
     */
    Place resolve(String reference, Place origin) {
        int hash = reference.indexOf('#');
        String target = hash < 0 ? reference : reference.substring(0, hash);
        String fragment = hash < 0 ? "" : reference.substring(hash + 1);
        Place start = start(reference, target, origin);
        if (fragment.startsWith("/") || fragment.isEmpty()) {
            return pointed(start, fragment, reference);
        }
        for (String name : List.of(start.base() + "#" + fragment, origin.base() + "#" + fragment, "#" + fragment)) {
            if (names.containsKey(name)) {
                return names.get(name);
            }
        }
        if (origin.dialect().isModern()) {
            throw missing(reference, "");
        }
        // Older dialects take an undeclared anchor for its document.
        int slash = fragment.indexOf('/');
        return pointed(start, slash < 0 ? "" : fragment.substring(slash), reference);
    }

    private Place start(String reference, String target, Place origin) {
        if (target.isEmpty()) {
            if (reference.isEmpty()) {
                throw missing(reference, "");
            }
            Place embedded = names.get(origin.base());
            return embedded != null && embedded.document() == origin.document()
                ? embedded : documents.get(origin.document());
        }
        String full = JsonUris.join(origin.base(), target);
        for (String name : List.of(full, target)) {
            if (names.containsKey(name)) {
                return names.get(name);
            }
        }
        String own = root().base();
        if (!own.isEmpty() && (own.equals(target) || own.equals(full))) {
            return root();
        }
        for (String uri : List.of(full, target)) {
            Place metaschema = metaschema(uri);
            if (metaschema != null) {
                return metaschema;
            }
        }
        throw missing(reference, "; add a reference with that name");
    }

    private Place metaschema(String uri) {
        int end = uri.indexOf("://");
        String rest = end < 0 ? "" : uri.substring(end + 3);
        if (!rest.startsWith(METASCHEMA_HOST)) {
            return null;
        }
        for (String scheme : List.of("http", "https")) {
            String own = scheme + "://" + rest;
            JsonNode root = Metaschemas.ALL.get(own);
            if (root != null) {
                if (!names.containsKey(own)) {
                    Place whole = add(root, own, JsonDialect.within(root, root().dialect()));
                    addNames(whole); // its anchors too
                    names.putIfAbsent(own, whole);
                }
                return names.get(own);
            }
        }
        return null;
    }

    private static Place pointed(Place start, String pointer, String reference) {
        List<String> steps = new ArrayList<>(List.of(pointer.split("/", -1)));
        steps.remove(0);
        boolean ignoresSlashes = !start.dialect().isModern(); // at the end
        while (ignoresSlashes && !steps.isEmpty() && steps.get(steps.size() - 1).isEmpty()) {
            steps.remove(steps.size() - 1);
        }
        JsonNode value = start.value();
        String base = start.base();
        for (String token : steps) {
            String step = decoded(token, reference).replace("~1", "/").replace("~0", "~");
            boolean isIndex = step.matches("[0-9]{1,9}");
            value = value.isArray() ? value.path(isIndex ? Integer.parseInt(step) : -1) : value.path(step);
            if (value.isMissingNode()) {
                throw missing(reference, ": there is no " + step);
            }
            String own = start.id(value);
            base = own == null ? base : JsonUris.join(base, JsonUris.document(own));
        }
        return start.at(value, base);
    }

    private static String decoded(String token, String reference) {
        try {
            return URLDecoder.decode(token, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException invalid) {
            throw missing(reference, "");
        }
    }

    private static UnusableSchema missing(String reference, String why) {
        return new UnusableSchema("$ref '" + reference + "' not found" + why);
    }

    /** Loaded when a schema refers to one. */
    private static final class Metaschemas {
        static final JsonNode ALL = read();

        private static JsonNode read() {
            try (InputStream in = JsonDocuments.class.getResourceAsStream(METASCHEMAS)) {
                return JSON.readTree(in);
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        }
    }
}
