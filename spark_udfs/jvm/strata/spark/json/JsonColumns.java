package strata.spark.json;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BinaryOperator;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.json.JsonParts.JsonPart;
import strata.spark.schema.Columns;
import strata.spark.schema.Columns.Nesting;
import strata.spark.schema.JsonDocuments;

/** Makes the columns of a JSON Schema: what {@code json_types.py} does for {@code decode}. */
public final class JsonColumns {
    /** The values that a schema allows, as columns show them; {@code item} belongs to arrays and to objects as maps. */
    private record Tree(String kind, Map<String, Tree> fields, Tree item) {
        public static Tree of(String kind) {
            return new Tree(kind, Map.of(), null);
        }

        public boolean isNumber() {
            return kind.equals("integer") || kind.equals("number");
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String OBJECT = "object";
    private static final Tree ANYTHING = Tree.of("any");
    private static final Tree NOTHING = Tree.of("null");
    private static final Map<String, DataType> SCALARS = Map.of(
            "string", DataTypes.StringType,
            "boolean", DataTypes.BooleanType,
            "integer", DataTypes.LongType,
            "number", DataTypes.DoubleType,
            "null", DataTypes.NullType);

    private final Nesting nesting = new Nesting("schema");
    private final List<String> columns;
    /** The properties at the top level. */
    private final Set<String> names = new LinkedHashSet<>();

    private JsonColumns(List<String> columns) {
        this.columns = columns;
    }

    /**
     * Return the columns of a schema.
     *
     * @param text the schema
     * @param references the schemas that it refers to, directly or not, by name
     * @param columns the properties to read, in this order; null for all
     * @throws IllegalArgumentException if there is no such property, or a part of the schema has no Spark type
     * @throws UnusableSchema if the schema is not one
     */
    public static Columns of(String text, Map<String, String> references, List<String> columns) {
        Map<String, JsonNode> others = new LinkedHashMap<>();
        references.forEach((name, one) -> others.put(name, parsed(one)));
        Tree tree;
        try {
            JsonPart root = JsonParts.of(JsonDocuments.registered(parsed(text), others));
            JsonColumns made = new JsonColumns(columns);
            tree = made.tree(root, "");
            if (columns != null) {
                tree = chosen(tree, columns, made.names);
            }
        } catch (StackOverflowError tooDeep) {
            throw new UnusableSchema("the schema is nested too deeply");
        }
        return new Columns(described(tree).toString(), type(tree));
    }

    private static JsonNode parsed(String text) {
        try {
            return JSON.readTree(text);
        } catch (JsonProcessingException invalid) {
            throw new UnusableSchema("not a JSON Schema: " + invalid.getOriginalMessage());
        }
    }

    private static Tree chosen(Tree tree, List<String> columns, Set<String> names) {
        if (!tree.kind.equals(OBJECT) || names.isEmpty()) {
            throw new IllegalArgumentException("`columns` needs an object with properties as the reader schema");
        }
        // A property that only some branches of a oneOf have gets no column.
        List<String> known = names.stream()
                .filter(one -> tree.fields.containsKey(one) || !columns.contains(one))
                .toList();
        Map<String, Tree> fields = new LinkedHashMap<>();
        Columns.chosen(known, columns, "the reader schema").forEach(name -> fields.put(name, tree.fields.get(name)));
        return new Tree(OBJECT, fields, null);
    }

    // Schemas

    private Tree tree(JsonPart part, String path) {
        JsonPart found = follow(part);
        nesting.count(path);
        return nesting.inside(found, path, "", () -> switch (found.kind) {
            case OBJECT -> object(found, path);
            case ARRAY -> array(found, path);
            case VALUES -> reduced(
                    found.values.stream().map(JsonColumns::scalar).toList(), JsonColumns::either);
            case ALL, ANY -> reduced(
                    trees(found.branches, path),
                    found.kind == JsonPart.Kind.ALL ? JsonColumns::both : JsonColumns::either);
            default -> scalar(found.kind);
        });
    }

    /** Return the part at the end of a chain of references, or one that allows everything if there is no end. */
    private static JsonPart follow(JsonPart part) {
        Set<JsonPart> seen = new LinkedHashSet<>();
        JsonPart found = part;
        while (found.kind == JsonPart.Kind.REFERENCE) {
            if (found.target == null || !seen.add(found)) {
                return new JsonPart(JsonPart.Kind.OTHER);
            }
            found = found.target;
        }
        return found;
    }

    private static Tree scalar(JsonPart.Kind kind) {
        return switch (kind) {
            case STRING -> Tree.of("string");
            case INTEGER -> Tree.of("integer");
            case NUMBER -> Tree.of("number");
            case BOOLEAN -> Tree.of("boolean");
            case NULL -> NOTHING;
            default -> ANYTHING;
        };
    }

    private static Tree reduced(List<Tree> trees, BinaryOperator<Tree> operator) {
        return trees.stream().reduce(operator).orElse(ANYTHING);
    }

    private List<Tree> trees(List<JsonPart> parts, String path) {
        List<Tree> trees = new ArrayList<>();
        parts.forEach(one -> trees.add(tree(one, path)));
        return trees;
    }

    private Tree object(JsonPart part, String path) {
        if (!part.properties.isEmpty()) {
            if (path.isEmpty()) {
                names.addAll(part.properties.keySet());
            }
            Map<String, Tree> fields = new LinkedHashMap<>();
            part.properties.forEach((name, one) -> {
                if (!path.isEmpty() || columns == null || columns.contains(name)) {
                    fields.put(name, tree(one, Nesting.within(path, name)));
                }
            });
            return new Tree(OBJECT, fields, null);
        }
        List<JsonPart> values = new ArrayList<>(part.branches);
        if (part.rest != null) {
            values.add(part.rest);
        }
        return part.isOpen || values.isEmpty()
                ? Tree.of(OBJECT)
                : new Tree("map", Map.of(), reduced(trees(values, path + "{}"), JsonColumns::either));
    }

    private Tree array(JsonPart part, String path) {
        List<Tree> items = new ArrayList<>();
        String inside = path + "[]";
        if (part.branches == null) {
            items.add(part.items == null ? ANYTHING : tree(part.items, inside));
        } else {
            items.addAll(trees(part.branches, inside));
            if (part.isOpen || part.rest != null) {
                items.add(part.isOpen ? ANYTHING : tree(part.rest, inside));
            }
        }
        return new Tree("array", Map.of(), reduced(items, JsonColumns::either));
    }

    /** Return the type that holds the values of both. */
    private static Tree either(Tree a, Tree b) {
        if (a.equals(b) || b.equals(NOTHING)) {
            return a;
        }
        if (a.equals(NOTHING)) {
            return b;
        }
        return a.isNumber() && b.isNumber() ? Tree.of("number") : ANYTHING;
    }

    /** Return the type of values that match both, or any type if they have nothing in common. */
    private static Tree both(Tree a, Tree b) {
        if (a.equals(b) || b.equals(ANYTHING) || b.equals(NOTHING)) {
            return a;
        }
        if (a.equals(ANYTHING) || a.equals(NOTHING)) {
            return b;
        }
        if (a.isNumber() && b.isNumber()) {
            return Tree.of("integer");
        }
        if (a.kind.equals(OBJECT) && b.kind.equals(OBJECT)) {
            Map<String, Tree> fields = new LinkedHashMap<>(a.fields);
            b.fields.forEach((name, one) -> fields.merge(name, one, JsonColumns::both));
            return new Tree(OBJECT, fields, null);
        }
        if (a.kind.equals("map") && b.kind.equals(OBJECT)) {
            return b.fields.isEmpty() ? a : b;
        }
        if (a.kind.equals(OBJECT) && b.kind.equals("map")) {
            return a.fields.isEmpty() ? b : a;
        }
        if (a.kind.equals(b.kind) && a.item != null && b.item != null) {
            return new Tree(a.kind, Map.of(), both(a.item, b.item));
        }
        return ANYTHING;
    }

    // Columns

    /** Return the type as {@code JsonReader} has it. */
    private static ObjectNode described(Tree tree) {
        ObjectNode node = JSON.createObjectNode();
        if (tree.kind.equals(OBJECT) && !tree.fields.isEmpty()) {
            ArrayNode fields = node.put("kind", OBJECT).putArray("fields");
            tree.fields.forEach((name, one) -> fields.addArray().add(name).add(described(one)));
            return node;
        }
        if (tree.item != null) {
            return node.put("kind", tree.kind).set("item", described(tree.item));
        }
        return node.put("kind", SCALARS.containsKey(tree.kind) ? tree.kind : "text");
    }

    private static DataType type(Tree tree) {
        if (tree.kind.equals(OBJECT) && !tree.fields.isEmpty()) {
            StructType struct = new StructType();
            for (Map.Entry<String, Tree> field : tree.fields.entrySet()) {
                struct = struct.add(field.getKey(), type(field.getValue()), true);
            }
            return struct;
        }
        if (tree.item != null) {
            DataType item = type(tree.item);
            return tree.kind.equals("array")
                    ? DataTypes.createArrayType(item, true)
                    : DataTypes.createMapType(DataTypes.StringType, item, true);
        }
        return SCALARS.getOrDefault(tree.kind, DataTypes.StringType);
    }
}
