package strata.spark.valid;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructType;
import strata.spark.write.EncodeSource;

/** What keywords of a JSON Schema may hold: the meta-schemas of the drafts, for the keywords that most drafts have. */
final class ValidShapes {
    private static final Pattern URI_REFERENCE = Pattern.compile("[\\w.~:/?#\\[\\]@!$&'()*+,;=%-]*");
    private static final Map<String, Predicate<JsonNode>> SHAPES = new HashMap<>();

    static {
        put(
                ValidShapes::isSchema,
                "additionalItems",
                "additionalProperties",
                "contains",
                "else",
                "if",
                "not",
                "propertyNames",
                "then",
                "unevaluatedItems",
                "unevaluatedProperties");
        put(ValidShapes::areSchemas, "allOf", "anyOf", "oneOf", "prefixItems");
        put(one -> isSchema(one) || areSchemas(one), "items");
        put(
                one -> isObjectOf(one, ValidShapes::isSchema),
                "$defs",
                "definitions",
                "dependentSchemas",
                "patternProperties",
                "properties");
        put(one -> isObjectOf(one, inner -> isSchema(inner) || areNames(inner)), "dependencies");
        put(one -> isObjectOf(one, ValidShapes::areNames), "dependentRequired");
        put(ValidShapes::areNames, "required");
        put(
                one -> isCount(one),
                "maxContains",
                "maxItems",
                "maxLength",
                "maxProperties",
                "minContains",
                "minItems",
                "minLength",
                "minProperties");
        put(JsonNode::isNumber, "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum");
        put(one -> one.isNumber() && one.asDouble() > 0, "multipleOf");
        put(one -> one.isTextual() && URI_REFERENCE.matcher(one.asText()).matches(), "$id", "$ref");
        put(
                JsonNode::isTextual,
                "$comment",
                "contentEncoding",
                "contentMediaType",
                "description",
                "format",
                "pattern",
                "title");
        put(JsonNode::isBoolean, "readOnly", "uniqueItems", "writeOnly");
        put(JsonNode::isArray, "enum", "examples");
        put(one -> one.isTextual() ? isType(one) : !one.isEmpty() && isListOf(one, ValidShapes::isType), "type");
    }

    private ValidShapes() {}

    private static void put(Predicate<JsonNode> shape, String... keywords) {
        for (String keyword : keywords) {
            SHAPES.put(keyword, shape);
        }
    }

    /** Return whether a value is a schema. */
    static boolean isSchema(JsonNode tree) {
        if (!tree.isObject()) {
            return tree.isBoolean();
        }
        for (Map.Entry<String, JsonNode> one : tree.properties()) {
            Predicate<JsonNode> shape = SHAPES.get(one.getKey());
            if (shape != null && !shape.test(one.getValue())) {
                return false;
            }
        }
        return true;
    }

    private static boolean areSchemas(JsonNode tree) {
        return tree.isArray() && !tree.isEmpty() && all(tree, ValidShapes::isSchema);
    }

    private static boolean areNames(JsonNode tree) {
        return isListOf(tree, JsonNode::isTextual);
    }

    /** Return whether a value is an array of different texts of a kind. */
    private static boolean isListOf(JsonNode tree, Predicate<JsonNode> kind) {
        Set<String> seen = new HashSet<>();
        return tree.isArray() && all(tree, one -> kind.test(one) && seen.add(one.asText()));
    }

    private static boolean isObjectOf(JsonNode tree, Predicate<JsonNode> kind) {
        return tree.isObject() && all(tree, kind);
    }

    private static boolean all(JsonNode tree, Predicate<JsonNode> kind) {
        for (JsonNode one : tree) {
            if (!kind.test(one)) {
                return false;
            }
        }
        return true;
    }

    private static boolean isType(JsonNode tree) {
        return tree.isTextual() && ValidKind.TITLES.contains(tree.asText());
    }

    private static boolean isCount(JsonNode tree) {
        return tree.isNumber() && tree.asDouble() >= 0 && tree.asDouble() == Math.rint(tree.asDouble());
    }

    /** The types of JSON Schema, and what errors call them. */
    enum ValidKind {
        NULL("null", "null"),
        BOOLEAN("a boolean", "another boolean"),
        INTEGER("an integer", "another integer"),
        NUMBER("a number", "another number"),
        STRING("a string", "another string"),
        ARRAY("an array", "another array"),
        OBJECT("an object", "another object");

        /** The names of the types, in the order in which the validator of Python gives them. */
        static final List<String> TITLES =
                Arrays.stream(values()).map(ValidKind::title).toList();

        final String got;
        public final String other;

        ValidKind(String got, String other) {
            this.got = got;
            this.other = other;
        }

        /** Return the words for some types: {@code a string, an integer or null}. */
        public static String words(Collection<String> titles) {
            return PythonText.anyOf(titles.stream()
                    .map(one -> valueOf(one.toUpperCase(Locale.ROOT)).got)
                    .sorted(Comparator.comparing(NULL.got::equals))
                    .toList());
        }

        String title() {
            return name().toLowerCase(Locale.ROOT);
        }

        /** Return the type that the values of a column have in JSON. */
        public static ValidKind of(DataType column) {
            if (column instanceof NullType) {
                return NULL;
            }
            if (column instanceof BooleanType) {
                return BOOLEAN;
            }
            if (column instanceof StructType || column instanceof MapType) {
                return OBJECT;
            }
            if (column instanceof ArrayType) {
                return ARRAY;
            }
            boolean hasPoint = column instanceof DecimalType decimal && decimal.scale() > 0;
            if (hasPoint || column instanceof FloatType || column instanceof DoubleType) {
                return NUMBER;
            }
            return column instanceof DecimalType || EncodeSource.plain(column) != null ? INTEGER : STRING;
        }
    }
}
