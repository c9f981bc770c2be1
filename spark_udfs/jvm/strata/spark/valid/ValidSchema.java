package strata.spark.valid;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import strata.spark.valid.ValidDocuments.OnlyInPython;
import strata.spark.valid.ValidExpression.ValidSteps;
import strata.spark.valid.ValidShapes.ValidKind;

/**
 * A JSON Schema → its rules, whatever the type of the column is: a list of each part's keywords, with the words of their
 * errors, in which each reference is replaced by what it refers to. {@link ValidCompiler} makes checks of them.
 *
 * <p>Only what means the same to the validator of Python becomes a rule; another keyword is an error that names it.
 */
public final class ValidSchema {
    static final String NOT_ALLOWED = "the schema does not allow the value";

    private static final String NEVER = "the schema allows no value here";
    private static final String MISSING = "expected a value, got none: the property is required";
    private static final Set<String> OLD = Set.of("draft-06", "draft-07");
    private static final String DRAFT_4 = "draft-04";
    private static final Set<String> ANNOTATIONS_SINCE_2019 =
            Set.of("format", "contentEncoding", "contentMediaType", "contentSchema");
    private static final Set<String> REFUSED = Set.of(
            "patternProperties",
            "propertyNames",
            "uniqueItems",
            "contains",
            "minContains",
            "maxContains",
            "if",
            "then",
            "else",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedProperties",
            "unevaluatedItems",
            "prefixItems",
            "additionalItems",
            "contentMediaType",
            "$dynamicRef",
            "$recursiveRef",
            "$dynamicAnchor",
            "$recursiveAnchor",
            "$vocabulary",
            "discriminator");
    private static final int MOST_RULES = 10_000;
    private static final int MOST_PARTS = 50_000;
    private static final int DEEPEST = 64;

    private final ValidDocuments documents;
    private final boolean isOld;
    private final ValidKeywords keywords = new ValidKeywords(new ValidSteps.Work());
    private final Deque<String> busy = new ArrayDeque<>();
    private final Set<String> usable = new HashSet<>();
    private int parts;
    private int count;
    private int depth;

    private ValidSchema(ValidDocuments documents, boolean isOld) {
        this.documents = documents;
        this.isOld = isOld;
    }

    /**
     * Return the rules of a schema, as JSON.
     *
     * @param named the schemas that it refers to, directly or not, by the names of the references
     * @throws OnlyInPython if only Python workers can validate with the schema, or it cannot be used at all
     */
    public static String rules(ValidDocuments.Source schema, Map<String, ValidDocuments.Source> named) {
        ValidDocuments documents = new ValidDocuments(schema, named);
        Set<String> drafts = documents.drafts();
        if (drafts.size() > 1 || drafts.contains(DRAFT_4)) {
            throw OnlyInPython.keyword("$schema", drafts.size() == 1 ? "of draft 4" : "of several drafts");
        }
        if (documents.hasResources()) {
            throw OnlyInPython.keyword("$id", "inside a schema");
        }
        return new ValidSchema(documents, OLD.containsAll(drafts))
                .rules(documents.root())
                .toString();
    }

    private static ArrayNode list() {
        return JsonNodeFactory.instance.arrayNode();
    }

    /** Add a rule to a list. */
    private static ObjectNode add(ArrayNode to, String check) {
        return to.addObject().put("check", check);
    }

    private ArrayNode rules(ValidDocuments.At at) {
        ArrayNode made = list();
        if (at.tree().isBoolean()) {
            if (!at.tree().asBoolean()) {
                add(made, "never").put("rule", at.rule()).put("detail", NEVER);
            }
            return made;
        }
        if (++parts > MOST_PARTS) { // references multiply them, even those without rules
            throw new OnlyInPython("JSON with validation by a schema of more than " + MOST_PARTS + " parts");
        }
        if (isOld && at.tree().has("$ref")) { // whose siblings older drafts ignore
            return referred(at);
        }
        if (++depth > DEEPEST) {
            throw new OnlyInPython("JSON with validation by a schema of more than " + DEEPEST + " levels");
        }
        for (Map.Entry<String, JsonNode> one : at.tree().properties()) {
            addRules(made, at, one.getKey(), one.getValue());
        }
        depth--;
        made.forEach(one -> count += one.has("table") ? one.path("table").size() : 1);
        if (count > MOST_RULES) {
            throw new OnlyInPython("JSON with validation by a schema of more than " + MOST_RULES + " rules");
        }
        return made;
    }

    private void addRules(ArrayNode made, ValidDocuments.At at, String keyword, JsonNode value) {
        if (!isOld && ANNOTATIONS_SINCE_2019.contains(keyword)) {
            return;
        }
        if (REFUSED.contains(keyword)) {
            throw OnlyInPython.keyword(keyword, "");
        }
        if (keywords.isKnown(keyword)) {
            ObjectNode rule = keywords.rule(keyword, value);
            if (rule != null) {
                made.add(rule.put("check", keyword).put("rule", at.rule(keyword)));
            }
            return;
        }
        switch (keyword) {
            case "$ref" -> made.addAll(referred(at));
            case "allOf" -> branches(at, keyword).forEach(one -> made.addAll((ArrayNode) one));
            case "oneOf", "anyOf" -> add(made, keyword)
                    .put("rule", at.rule(keyword))
                    .set("branches", branches(at, keyword));
            case "not" -> add(made, keyword)
                    .put("rule", at.rule(keyword))
                    .put("detail", NOT_ALLOWED)
                    .set("checks", rules(at.down(keyword)));
            case "items" -> {
                if (value.isArray()) {
                    throw OnlyInPython.keyword(keyword, "with several schemas");
                }
                add(made, keyword).set("checks", rules(at.down(keyword)));
            }
            case "properties" -> add(made, keyword).set("properties", properties(at));
            case "required" -> addRequired(made, at, value);
            case "additionalProperties" -> addAdditional(made, at);
            default -> {} // an annotation, or unknown to the drafts too
        }
    }

    private ArrayNode referred(ValidDocuments.At at) {
        ValidDocuments.At target = documents.target(at, at.tree().path("$ref").asText());
        if (!usable.contains(target.name()) && !ValidShapes.isSchema(target.tree())) {
            throw ValidDocuments.unusable(); // a reference may lead to any part of a document
        }
        usable.add(target.name());
        if (busy.contains(target.name())) {
            throw OnlyInPython.keyword("$ref", "to a schema around it");
        }
        busy.push(target.name());
        ArrayNode made = rules(target);
        busy.pop();
        return made;
    }

    private ArrayNode branches(ValidDocuments.At at, String keyword) {
        ArrayNode made = list();
        for (int place = 0; place < at.tree().path(keyword).size(); place++) {
            made.add(rules(at.down(keyword, String.valueOf(place))));
        }
        return made;
    }

    private ArrayNode properties(ValidDocuments.At at) {
        ArrayNode made = list();
        at.tree().path("properties").fieldNames().forEachRemaining(name -> made.addObject()
                .put("name", name)
                .put("part", PythonText.fieldPart(name))
                .set("checks", rules(at.down("properties", name))));
        return made;
    }

    private static List<String> known(ValidDocuments.At at) {
        List<String> names = new ArrayList<>();
        at.tree().path("properties").fieldNames().forEachRemaining(names::add);
        return names;
    }

    private void addRequired(ArrayNode made, ValidDocuments.At at, JsonNode names) {
        Set<String> forbidden = new HashSet<>();
        names.forEach(one -> forbidden.add(one.asText()));
        known(at).forEach(forbidden::remove);
        if (!forbidden.isEmpty() && isClosed(at) && at.tree().has("properties")) { // their errors vary
            throw OnlyInPython.keyword("required", "of a property that `additionalProperties` forbids");
        }
        ObjectNode rule = add(made, "required").put("rule", at.rule("required")).put("detail", MISSING);
        rule.set("names", names);
        known(at).forEach(rule.putArray("known")::add);
    }

    private static boolean isClosed(ValidDocuments.At at) {
        JsonNode additional = at.tree().path("additionalProperties");
        return additional.isBoolean() && !additional.asBoolean();
    }

    private void addAdditional(ArrayNode made, ValidDocuments.At at) {
        String keyword = "additionalProperties";
        if (isClosed(at) && !at.tree().has("properties")) {
            add(made, "empty").put("rule", at.rule(keyword)).put("detail", NEVER);
            return;
        }
        ObjectNode rule = isClosed(at) ? add(made, "closed").put("rule", at.rule(keyword)) : add(made, "additional");
        known(at).forEach(rule.putArray("known")::add);
        if (!isClosed(at)) {
            rule.set("checks", rules(at.down(keyword)));
        }
    }

    /**
     * The keywords of JSON Schemas that concern one value, as rules for {@link ValidCompiler}.
     *
     * <p>The words are those of {@code serdes/json_schema/explanations.py}.
     */
    static final class ValidKeywords {
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
                leaves.put(
                        keyword,
                        keyword.equals("multipleOf")
                                ? ValidKeywords::multiple
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
        public ObjectNode rule(String keyword, JsonNode value) {
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
            List<String> types =
                    ValidKind.TITLES.stream().filter(given::contains).toList();
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
}
