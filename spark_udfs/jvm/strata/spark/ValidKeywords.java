package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The keywords of JSON Schemas that concern one value, as rules for {@link ValidCompiler}.
 *
 * <p>The words are those of {@code serdes/json_schema/explanations.py}.
 */
final class ValidKeywords {
    /** Makes the rule of a keyword from its value; null if it checks nothing. */
    private interface Leaf {
        ObjectNode rule(String keyword, JsonNode value);
    }

    /** Doubles hold every integer up to it. */
    private static final double EXACT = 0x1p53;

    private static final int LONGEST_QUOTE = 40;
    private static final Set<String> ASSERTED = Set.of("date", "date-time", "time");

    /** Formats that no draft up to 7 knows. */
    private static final Set<String> IGNORED_FORMATS =
        Set.of("int32", "int64", "float", "double", "decimal", "byte", "binary", "password", "uuid");

    private static final Map<String, String> FORMATS = Map.of(
        "date", "an ISO 8601 date",
        "date-time", "an ISO 8601 date and time with a time zone",
        "time", "an ISO 8601 time of day with a time zone");

    /** The words of bounds: what is expected, and what is given. */
    private static final Map<String, String[]> BOUNDS = new HashMap<>();

    static {
        bound("minimum", "a number of at least %s", "a smaller one");
        bound("maximum", "a number of at most %s", "a larger one");
        bound("exclusiveMinimum", "a number above %s", "a smaller or equal one");
        bound("exclusiveMaximum", "a number below %s", "a larger or equal one");
        bound("multipleOf", "a multiple of %s", "another number");
        bound("minLength", "a string of at least %s characters", "a shorter one");
        bound("maxLength", "a string of at most %s characters", "a longer one");
        bound("minItems", "an array of at least %s items", "a shorter one");
        bound("maxItems", "an array of at most %s items", "a longer one");
        bound("minProperties", "an object of at least %s properties", "fewer");
        bound("maxProperties", "an object of at most %s properties", "more");
    }

    private final Map<String, Leaf> leaves = new HashMap<>();
    private final ValidSteps.Work work;

    /** @param work what all patterns of the schema may cost */
    ValidKeywords(ValidSteps.Work work) {
        this.work = work;
        leaves.put("type", ValidKeywords::type);
        leaves.put("enum", ValidKeywords::enumerated);
        leaves.put("const", ValidKeywords::constant);
        leaves.put("format", ValidKeywords::format);
        leaves.put("contentEncoding", ValidKeywords::encoding);
        leaves.put("pattern", this::pattern);
        for (String keyword : BOUNDS.keySet()) {
            leaves.put(keyword, keyword.equals("multipleOf") ? ValidKeywords::multiple
                : ValidNumbers.isLimit(keyword) ? ValidKeywords::limit : ValidKeywords::length);
        }
    }

    private static void bound(String keyword, String expected, String got) {
        BOUNDS.put(keyword, new String[] {"expected " + expected + ", got ", got});
    }

    boolean isKnown(String keyword) {
        return leaves.containsKey(keyword);
    }

    /**
     * Return the rule of a keyword, null if it checks nothing.
     *
     * @throws OnlyInPython if only Python workers validate with this value of it
     */
    ObjectNode rule(String keyword, JsonNode value) {
        return leaves.get(keyword).rule(keyword, value);
    }

    private static ObjectNode rule() {
        return JsonNodeFactory.instance.objectNode();
    }

    private static ObjectNode type(String keyword, JsonNode value) {
        Set<String> given = new HashSet<>(Set.of(value.asText()));
        value.forEach(one -> given.add(one.asText()));
        given.remove("");
        Set<String> all = new HashSet<>(ValidKind.TITLES);
        all.removeAll(given);
        if (all.isEmpty() || all.equals(Set.of("integer"))) { // which are numbers
            return null;
        }
        // In the order of the validator of Python, which the words follow.
        List<String> types = ValidKind.TITLES.stream().filter(given::contains).toList();
        ObjectNode rule = rule().put("detail", "expected " + ValidKind.words(types) + ", got ");
        types.forEach(rule.putArray("types")::add);
        return rule;
    }

    private static ObjectNode enumerated(String keyword, JsonNode value) {
        List<String> texts = new ArrayList<>();
        ObjectNode rule = rule();
        ArrayNode values = rule.putArray("values");
        for (JsonNode one : value) {
            values.add(scalar(keyword, one));
            if (one.isTextual()) {
                texts.add(one.asText());
            }
        }
        String listed = texts.size() == value.size() ? PythonText.oneOf(texts) : "a value of the enum";
        return rule.put("detail", "expected " + listed + ", got ");
    }

    private static ObjectNode constant(String keyword, JsonNode value) {
        ObjectNode rule = rule();
        rule.putArray("values").add(scalar(keyword, value));
        String json = PythonText.json(value);
        String shown = json.substring(0, Math.min(json.length(), LONGEST_QUOTE));
        return rule.put("detail", "expected " + shown + ", got ").put("mark", PythonText.str(value));
    }

    private static JsonNode scalar(String keyword, JsonNode value) {
        if (value.isContainerNode()) {
            throw OnlyInPython.keyword(keyword, "with an object or array");
        }
        if (value.isNumber() && Math.abs(value.asDouble()) >= EXACT) {
            throw longNumber(keyword);
        }
        return value;
    }

    private static OnlyInPython longNumber(String keyword) {
        return OnlyInPython.keyword(keyword, "with a long number");
    }

    private static ObjectNode limit(String keyword, JsonNode value) {
        if (value.isIntegralNumber() ? !value.canConvertToLong() : Math.abs(value.asDouble()) >= EXACT) {
            throw longNumber(keyword);
        }
        return bounded(keyword, PythonText.str(value), PythonText.str(value));
    }

    private static ObjectNode multiple(String keyword, JsonNode value) {
        if (value.asDouble() >= EXACT) {
            throw longNumber(keyword);
        }
        if (value.asDouble() != Math.rint(value.asDouble())) {
            throw OnlyInPython.keyword(keyword, "with a fraction");
        }
        return bounded(keyword, String.valueOf(value.asLong()), PythonText.str(value));
    }

    private static ObjectNode length(String keyword, JsonNode value) {
        if (value.asDouble() >= EXACT) {
            throw longNumber(keyword);
        }
        return bounded(keyword, String.valueOf(value.asLong()), String.valueOf(value.asLong()));
    }

    private static ObjectNode bounded(String keyword, String limit, String shown) {
        String[] words = BOUNDS.get(keyword);
        return rule().put("limit", limit).put("detail", words[0].replace("%s", shown) + words[1]);
    }

    private ObjectNode pattern(String keyword, JsonNode value) {
        String shown = PythonText.quoted(PythonText.cut(value.asText()));
        ObjectNode rule = ValidExpression.automaton(value.asText(), work);
        if (rule == null) {
            throw OnlyInPython.keyword(keyword, shown);
        }
        return rule.put("detail", "expected a string that matches " + shown + ", got another string");
    }

    private static ObjectNode format(String keyword, JsonNode value) {
        String name = value.asText();
        if (IGNORED_FORMATS.contains(name)) {
            return null;
        }
        if (!ASSERTED.contains(name)) {
            throw OnlyInPython.keyword(keyword, PythonText.quoted(PythonText.cut(name)));
        }
        return rule().put("name", name).put("detail", "expected " + FORMATS.get(name) + ", got another string");
    }

    private static ObjectNode encoding(String keyword, JsonNode value) {
        if (!value.asText().equals("base64")) {
            throw OnlyInPython.keyword(keyword, PythonText.quoted(PythonText.cut(value.asText())));
        }
        return rule().put("detail", ValidSchema.NOT_ALLOWED);
    }
}
