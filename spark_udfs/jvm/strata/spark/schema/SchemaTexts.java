package strata.spark.schema;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.avro.Schema;
import strata.spark.bytes.Limits.UnusableSchema;

/**
 * A rewriter of schema texts for Avro's parser.
 *
 * <p>{@code .X} is the type X without namespace, wherever it is used. Avro's parser looks for a type spelled exactly
 * so. It accepts {@code X}, unless the enclosing namespace has its own X, and it accepts equal definitions.
 */
public final class SchemaTexts {
    /** The property of a field that has its default as JSON, see {@link #withDefaults}. */
    public static final String DEFAULT = "strata-json-default";

    /** Python writes numbers that are not finite by their names. */
    private static final JsonMapper JSON = JsonMapper.builder()
            .enable(JsonReadFeature.ALLOW_JAVA_COMMENTS)
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
            .build();

    private static final Set<String> NAMED = Set.of("record", "error", "enum", "fixed");
    private static final int MAX_DEPTH = 250;

    private static final String MARK = "texts:";

    private final Set<String> declared = new HashSet<>();
    private final Map<String, ObjectNode> withoutNamespace = new HashMap<>();

    /** Whether fields keep their defaults, which Avro's parser changes or refuses, in a property. */
    private final boolean keepsDefaults;

    private SchemaTexts(boolean keepsDefaults) {
        this.keepsDefaults = keepsDefaults;
    }

    /** Parse the last of the texts; each may use the names of those before it. */
    public static Schema parse(List<String> texts) {
        boolean hasDots = texts.stream().anyMatch(text -> text.contains("\"."));
        return last(hasDots ? new SchemaTexts(false).rewritten(texts) : texts);
    }

    /**
     * Parse the last of the texts, as a reader schema: a default stays as its text is, in the property {@link #DEFAULT}
     * of the field.
     */
    public static Schema withDefaults(List<String> texts) {
        return last(new SchemaTexts(true).rewritten(texts));
    }

    private static Schema last(List<String> texts) {
        Schema.Parser parser = parser().setValidateDefaults(false);
        Schema last = null;
        for (String text : texts) {
            last = parser.parse(text);
        }
        return last;
    }

    /** Return texts as one, for {@link #read}. */
    public static String write(List<String> texts) {
        try {
            return MARK + JSON.writeValueAsString(texts);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Parse one schema text, or several that {@link #write} has joined. */
    public static Schema read(String written) {
        return parse(isWritten(written) ? texts(written) : List.of(written));
    }

    /** Return whether {@link #write} has joined the texts. */
    public static boolean isWritten(String text) {
        return text.startsWith(MARK);
    }

    /** Return the texts that {@link #write} has joined. */
    public static List<String> texts(String written) {
        try {
            return Arrays.asList(JSON.readValue(written.substring(MARK.length()), String[].class));
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Return the default that a field has in the property {@link #DEFAULT}, or null. */
    public static JsonNode defaultOf(Schema.Field field) {
        try {
            return field.getObjectProp(DEFAULT) instanceof String text ? JSON.readTree(text) : null;
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Return a parser that accepts any name. Avro 1.11 (Spark 3.5) and 1.12 have different ways to say so. */
    private static Schema.Parser parser() {
        try {
            Class<?> validator = Class.forName("org.apache.avro.NameValidator");
            return Schema.Parser.class
                    .getConstructor(validator)
                    .newInstance(validator.getField("NO_VALIDATION").get(null));
        } catch (ClassNotFoundException before12) {
            return parser11();
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Schema.Parser parser11() {
        try {
            Schema.Parser parser = new Schema.Parser();
            return (Schema.Parser)
                    Schema.Parser.class.getMethod("setValidate", boolean.class).invoke(parser, false);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private List<String> rewritten(List<String> texts) {
        List<JsonNode> trees = new ArrayList<>();
        try {
            for (String text : texts) {
                trees.add(JSON.readTree(text));
            }
        } catch (JsonProcessingException noJson) {
            return texts; // Avro's parser has the better message
        }
        trees.forEach(tree -> walk(tree, "", 0, true));
        return trees.stream().map(tree -> walk(tree, "", 0, false).toString()).toList();
    }

    /** Declare the named types of a type, or rewrite the names that it uses. */
    private JsonNode walk(JsonNode type, String space, int depth, boolean declares) {
        if (depth > MAX_DEPTH) {
            throw new UnusableSchema("the types of the schema are nested too deeply");
        }
        if (type instanceof ArrayNode union) {
            ArrayNode made = JSON.createArrayNode();
            union.forEach(branch -> made.add(walk(branch, space, depth + 1, declares)));
            return made;
        }
        if (!(type instanceof ObjectNode object)) {
            return declares || !type.isTextual() ? type : name(type.asText(), space, depth);
        }
        String kind = object.path("type").asText();
        if (NAMED.contains(kind)) {
            return named(object, space, depth, declares);
        }
        String key = kind.equals("array") ? "items" : kind.equals("map") ? "values" : "type";
        ObjectNode made = object.deepCopy();
        if (object.has(key)) {
            made.set(key, walk(object.get(key), space, depth + 1, declares));
        }
        return made;
    }

    private JsonNode named(ObjectNode type, String outer, int depth, boolean declares) {
        String stated =
                type.path("namespace").isTextual() ? type.path("namespace").asText() : outer;
        String full = full(type.path("name").asText(), stated);
        String space = full.contains(".") ? full.substring(0, full.lastIndexOf('.')) : "";
        if (declares) {
            declared.add(full);
            if (space.isEmpty()) {
                withoutNamespace.putIfAbsent(full, type);
            }
        }
        ObjectNode made = type.deepCopy();
        for (JsonNode field : made.path("fields")) {
            if (field instanceof ObjectNode one && one.has("type")) {
                one.set("type", walk(one.get("type"), space, depth + 1, declares));
                keepDefault(one);
            }
        }
        return made;
    }

    private void keepDefault(ObjectNode field) {
        if (keepsDefaults && field.has("default")) {
            try {
                field.put(DEFAULT, JSON.writeValueAsString(field.remove("default")));
            } catch (JsonProcessingException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    private JsonNode name(String name, String space, int depth) {
        String full = full(name, space);
        if (!name.startsWith(".") || !declared.contains(full)) {
            return TextNode.valueOf(name);
        }
        if (full.contains(".") || space.isEmpty() || !declared.contains(space + "." + full)) {
            return TextNode.valueOf(full);
        }
        ObjectNode definition = withoutNamespace.get(full).deepCopy();
        definition.put("name", full).put("namespace", "");
        return walk(definition, "", depth + 1, false);
    }

    private static String full(String name, String space) {
        if (name.contains(".")) {
            return name.startsWith(".") ? name.substring(1) : name;
        }
        return space.isEmpty() ? name : space + "." + name;
    }
}
