package strata.spark.schema;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import strata.spark.bytes.Limits.UnusableSchema;

/**
 * Finds what a {@code $ref} means: in its own document, in another that has a name, or in a known metaschema. Nothing is
 * fetched. Three callers follow references, and {@link Rules} has what they differ in.
 */
public final class JsonDocuments {
    /** Whose rules decide what a reference means, where it is unusual. */
    public enum Rules {
        /** The registry's, by {@code compat/json_schema/documents.py}: for columns. */
        REGISTRY(true, true, false),
        /** Those of Python's validator, where all of them agree: for checks of rows. */
        VALIDATOR(false, true, false),
        /** Those of {@code spark_udfs/encoding/json_payloads.py}, which knows one document: for rows. */
        WRITER(false, false, true);

        /** Whether {@code +} is a space, the slashes at the end of older dialects do not count, and metaschemas are known. */
        private final boolean isRegistry;
        /** Whether a step can be the index of an item. */
        private final boolean countsItems;
        /** Whether an encoded slash separates steps too. */
        private final boolean decodesFirst;

        Rules(boolean isRegistry, boolean countsItems, boolean decodesFirst) {
            this.isRegistry = isRegistry;
            this.countsItems = countsItems;
            this.decodesFirst = decodesFirst;
        }
    }

    /** A schema in a document; {@code base} is the base of relative URIs. */
    public record Place(JsonNode value, String base, int document, JsonDialect dialect) {
        public Place at(JsonNode other, String otherBase) {
            return new Place(other, otherBase, document, dialect);
        }

        /** Return the id of a value, or null. */
        public String id(JsonNode other) {
            return other.path(dialect.idKeyword()).textValue();
        }
    }

    /**
     * What a reference means.
     *
     * @param steps the steps of its JSON Pointer
     */
    public record Target(Place place, List<String> steps) {}

    /** A reference that leads nowhere. */
    public static final class Unresolved extends UnusableSchema {
        private static final long serialVersionUID = 1L;

        private final boolean hasDocument;

        Unresolved(String reference, String why, boolean hasDocument) {
            super("$ref '" + reference + "' not found" + why);
            this.hasDocument = hasDocument;
        }

        /** Return whether there is the document, in which only the part is missing. */
        public boolean hasDocument() {
            return hasDocument;
        }
    }

    /** The metaschemas that json-schema.org publishes; the build of the jar adds them. */
    private static final String METASCHEMAS = "/strata/spark/metaschemas.json";

    private static final String METASCHEMA_HOST = "json-schema.org/";
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Keywords with values, not schemas. */
    private static final Set<String> VALUES = Set.of("enum", "const", "default", "examples");

    private static final Set<String> MODERN_VALUES = Set.of("enum", "const");

    private static final Pattern INDEX = Pattern.compile("[0-9]{1,9}");

    private final Rules rules;
    private final List<Place> documents = new ArrayList<>();
    private final Map<String, Place> names = new HashMap<>();

    private JsonDocuments(Rules rules) {
        this.rules = rules;
    }

    /**
     * Return a schema and what it refers to, as the registry has them.
     *
     * @param references the schemas that it refers to, directly or not, by name
     */
    public static JsonDocuments registered(JsonNode root, Map<String, JsonNode> references) {
        JsonDocuments made = new JsonDocuments(Rules.REGISTRY);
        made.add(root, "", JsonDialect.of(root));
        references.forEach((name, one) ->
                made.add(one, name, JsonDialect.within(one, made.root().dialect())));
        for (Place whole : made.documents) {
            if (whole != made.root()) {
                made.names.putIfAbsent(withoutHash(whole.base()), whole);
                made.names.putIfAbsent(withoutHash(JsonUris.join(made.root().base(), whole.base())), whole);
            }
            made.addNames(whole);
        }
        return made;
    }

    /**
     * Return documents as a validator has them, of which the first is the schema.
     *
     * @param placed the documents by their URIs
     * @param stated returns the URI that the document at a URI states itself
     */
    public static JsonDocuments placed(Map<String, JsonNode> placed, UnaryOperator<String> stated) {
        JsonDocuments made = new JsonDocuments(Rules.VALIDATOR);
        placed.forEach((uri, root) -> {
            Place whole = made.add(root, uri, JsonDialect.of(root));
            made.names.putIfAbsent(uri, whole);
            made.names.putIfAbsent(stated.apply(uri), whole);
        });
        return made;
    }

    /** Return a schema whose references to other documents are not followed. */
    public static JsonDocuments alone(JsonNode root) {
        JsonDocuments made = new JsonDocuments(Rules.WRITER);
        made.add(root, "", JsonDialect.of(root));
        return made;
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
    public Place root() {
        return documents.get(0);
    }

    /** Return the document that has a URI, the first of several. */
    public Place placed(String uri) {
        return names.get(uri);
    }

    /** Return the document that a place is in. */
    public Place whole(Place place) {
        return documents.get(place.document());
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
            value.properties().forEach(one -> {
                if (!values.contains(one.getKey())) {
                    stack.push(inner.at(one.getValue(), inner.base()));
                }
            });
        }
    }

    /** Return the base URI inside a schema with an id. */
    public static String joined(String base, String own) {
        String target = JsonUris.document(own);
        return target.isEmpty() ? base : JsonUris.join(base, target);
    }

    /**
     * Return the schema that a reference means at a place.
     *
     * @throws Unresolved if there is none
     */
    public Target resolve(String reference, Place origin) {
        int hash = reference.indexOf('#');
        String target = hash < 0 ? reference : reference.substring(0, hash);
        String fragment = hash < 0 ? "" : reference.substring(hash + 1);
        Place start = start(reference, target, origin);
        if (fragment.startsWith("/") || fragment.isEmpty()) {
            return pointed(start, fragment, reference);
        }
        for (String name : List.of(start.base() + "#" + fragment, origin.base() + "#" + fragment, "#" + fragment)) {
            if (names.containsKey(name)) {
                return new Target(names.get(name), List.of());
            }
        }
        if (origin.dialect().isModern()) {
            throw new Unresolved(reference, "", true);
        }
        // Older dialects take an undeclared anchor for its document.
        int slash = fragment.indexOf('/');
        return pointed(start, slash < 0 ? "" : fragment.substring(slash), reference);
    }

    private Place start(String reference, String target, Place origin) {
        if (target.isEmpty()) {
            if (reference.isEmpty()) {
                throw new Unresolved(reference, "", false);
            }
            Place embedded = names.get(origin.base());
            return embedded != null && embedded.document() == origin.document()
                    ? embedded
                    : documents.get(origin.document());
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
        throw new Unresolved(reference, "; add a reference with that name", false);
    }

    private Place metaschema(String uri) {
        int end = uri.indexOf("://");
        String rest = end < 0 ? "" : uri.substring(end + 3);
        if (!rules.isRegistry || !rest.startsWith(METASCHEMA_HOST)) {
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

    private Target pointed(Place start, String pointer, String reference) {
        List<String> tokens =
                new ArrayList<>(List.of((rules.decodesFirst ? decoded(pointer, reference) : pointer).split("/", -1)));
        tokens.remove(0);
        boolean ignoresSlashes = rules.isRegistry && !start.dialect().isModern(); // at the end
        while (ignoresSlashes
                && !tokens.isEmpty()
                && tokens.get(tokens.size() - 1).isEmpty()) {
            tokens.remove(tokens.size() - 1);
        }
        List<String> steps = new ArrayList<>();
        JsonNode value = start.value();
        String base = start.base();
        for (String token : tokens) {
            String step = (rules.decodesFirst ? token : decoded(token, reference))
                    .replace("~1", "/")
                    .replace("~0", "~");
            if (value.isArray()) {
                boolean isIndex = rules.countsItems && INDEX.matcher(step).matches();
                step = isIndex ? String.valueOf(Integer.parseInt(step)) : step;
                value = value.path(isIndex ? Integer.parseInt(step) : -1);
            } else {
                value = value.path(step);
            }
            if (value.isMissingNode()) {
                throw new Unresolved(reference, ": there is no " + step, true);
            }
            steps.add(step);
            String own = start.id(value);
            base = own == null ? base : JsonUris.join(base, JsonUris.document(own));
        }
        return new Target(start.at(value, base), steps);
    }

    /** Return a text without percent-encoding. */
    private String decoded(String text, String reference) {
        try {
            return URLDecoder.decode(rules.isRegistry ? text : text.replace("+", "%2B"), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException malformed) {
            throw new Unresolved(reference, "", true);
        }
    }

    /** Loaded when a schema refers to one. */
    private static final class Metaschemas {
        public static final JsonNode ALL = read();

        private static JsonNode read() {
            try (InputStream in = JsonDocuments.class.getResourceAsStream(METASCHEMAS)) {
                return JSON.readTree(in);
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        }
    }

    /** The dialects of JSON Schema, by {@code compat/json_schema/dialects.py}. */
    public enum JsonDialect {
        DRAFT_4("json-schema.org/draft-04/schema", "json-schema.org/schema"),
        DRAFT_6("json-schema.org/draft-06/schema"),
        DRAFT_7("json-schema.org/draft-07/schema"),
        DRAFT_2019_09("json-schema.org/draft/2019-09/schema"),
        DRAFT_2020_12("json-schema.org/draft/2020-12/schema");

        private final List<String> starts;

        JsonDialect(String... starts) {
            this.starts = List.of(starts);
        }

        /** Return whether the registry reads the dialect by its newer rules. */
        public boolean isModern() {
            return compareTo(DRAFT_2019_09) >= 0;
        }

        /** Return the keyword that names a schema. */
        public String idKeyword() {
            return this == DRAFT_4 ? "id" : "$id";
        }

        /** Return the dialect of a document. */
        public static JsonDialect of(JsonNode root) {
            JsonDialect own = named(root);
            return own == null ? DRAFT_7 : own;
        }

        /** Return the dialect in which to read a document that another one refers to. */
        public static JsonDialect within(JsonNode root, JsonDialect referring) {
            JsonDialect own = named(root);
            return own != null && !own.isModern() && !referring.isModern() ? own : referring;
        }

        private static JsonDialect named(JsonNode root) {
            String uri = root.path("$schema").asText("");
            String rest =
                    uri.startsWith("http://") ? uri.substring(7) : uri.startsWith("https://") ? uri.substring(8) : "";
            for (JsonDialect one : values()) {
                for (String start : one.starts) {
                    if (rest.startsWith(start)) {
                        return one;
                    }
                }
            }
            return null;
        }
    }

    /** URIs in JSON Schemas, joined as Python's {@code urllib.parse} joins them, with which the registry reads schemas. */
    public static final class JsonUris {
        /** The schemes whose URIs can be relative. */
        private static final Set<String> RELATIVE = Set.of(
                "",
                "ftp",
                "http",
                "gopher",
                "nntp",
                "imap",
                "wais",
                "file",
                "https",
                "shttp",
                "mms",
                "prospero",
                "rtsp",
                "rtsps",
                "rtspu",
                "sftp",
                "svn",
                "svn+ssh",
                "ws",
                "wss");

        private static final Pattern PARTS = Pattern.compile(
                "(?:([A-Za-z][A-Za-z0-9+.\\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\\?([^#]*))?(?:#(.*))?", Pattern.DOTALL);

        private record Parts(String scheme, String authority, String path, String query, String fragment) {
            public static Parts of(String uri, String scheme) {
                Matcher parts = PARTS.matcher(uri);
                if (!parts.matches()) {
                    throw new IllegalStateException(uri); // the expression matches any text
                }
                String own = parts.group(1) == null ? scheme : parts.group(1).toLowerCase(Locale.ROOT);
                return new Parts(own, or(parts.group(2)), parts.group(3), or(parts.group(4)), or(parts.group(5)));
            }

            private static String or(String part) {
                return part == null ? "" : part;
            }

            public String text() {
                boolean hasAuthority = !authority.isEmpty()
                        || !scheme.isEmpty() && RELATIVE.contains(scheme) && !path.startsWith("//");
                String slash = hasAuthority && !path.isEmpty() && !path.startsWith("/") ? "/" : "";
                return (scheme.isEmpty() ? "" : scheme + ":")
                        + (hasAuthority ? "//" + authority : "")
                        + slash
                        + path
                        + (query.isEmpty() ? "" : "?" + query)
                        + (fragment.isEmpty() ? "" : "#" + fragment);
            }
        }

        private JsonUris() {}

        /** Return what a URI means in a document with a base URI; both may be empty. */
        public static String join(String base, String uri) {
            if (base.isEmpty() || uri.isEmpty()) {
                return base + uri;
            }
            Parts from = Parts.of(base, "");
            Parts to = Parts.of(uri, from.scheme);
            if (!to.scheme.equals(from.scheme) || !RELATIVE.contains(to.scheme)) {
                return uri;
            }
            if (!to.authority.isEmpty()) {
                return to.text();
            }
            boolean isSame = to.path.isEmpty();
            String query = isSame && to.query.isEmpty() ? from.query : to.query;
            return new Parts(
                            to.scheme,
                            from.authority,
                            isSame ? from.path : merged(from.path, to.path),
                            query,
                            to.fragment)
                    .text();
        }

        private static String merged(String base, String path) {
            List<String> segments = new ArrayList<>();
            if (!path.startsWith("/")) {
                segments.addAll(Arrays.asList(base.split("/", -1)));
                if (!segments.get(segments.size() - 1).isEmpty()) {
                    segments.remove(segments.size() - 1);
                }
            }
            boolean isMerged = !path.startsWith("/");
            segments.addAll(Arrays.asList(path.split("/", -1)));
            List<String> left = new ArrayList<>();
            int last = segments.size() - 1;
            for (int place = 0; place <= last; place++) {
                String one = segments.get(place);
                if (one.equals("..")) {
                    if (!left.isEmpty()) {
                        left.remove(left.size() - 1);
                    }
                } else if (!one.equals(".") && !(isMerged && one.isEmpty() && place > 0 && place < last)) {
                    left.add(one);
                }
            }
            if (segments.get(last).equals(".") || segments.get(last).equals("..")) {
                left.add("");
            }
            String joined = String.join("/", left);
            return joined.isEmpty() ? "/" : joined;
        }

        /** Return a URI without its fragment. */
        public static String document(String uri) {
            if (uri.indexOf('#') < 0) {
                return uri;
            }
            Parts parts = Parts.of(uri, "");
            return new Parts(parts.scheme, parts.authority, parts.path, parts.query, "").text();
        }

        /** Return the fragment of a URI; empty without one. */
        public static String fragment(String uri) {
            return Parts.of(uri, "").fragment;
        }
    }
}
