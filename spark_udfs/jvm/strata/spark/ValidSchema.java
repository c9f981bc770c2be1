package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A JSON Schema → its rules, whatever the type of the column is: a list of each part's keywords, with the words of their
 * errors, in which each reference is replaced by what it refers to. {@link ValidCompiler} makes checks of them.
 *
 * <p>Only what means the same to the validator of Python becomes a rule; another keyword is an error that names it.
 */
final class ValidSchema {
    static final String NOT_ALLOWED = "the schema does not allow the value";

    private static final String NEVER = "the schema allows no value here";
    private static final String MISSING = "expected a value, got none: the property is required";
    private static final Set<String> OLD = Set.of("draft-06", "draft-07");
    private static final String DRAFT_4 = "draft-04";
    private static final Set<String> ANNOTATIONS_SINCE_2019 =
        Set.of("format", "contentEncoding", "contentMediaType", "contentSchema");
    private static final Set<String> REFUSED = Set.of(
        "patternProperties", "propertyNames", "uniqueItems", "contains", "minContains", "maxContains", "if", "then",
        "else", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems",
        "prefixItems", "additionalItems", "contentMediaType", "$dynamicRef", "$recursiveRef", "$dynamicAnchor",
        "$recursiveAnchor", "$vocabulary", "discriminator");
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
    static String rules(ValidDocuments.Source schema, Map<String, ValidDocuments.Source> named) {
        ValidDocuments documents = new ValidDocuments(schema, named);
        Set<String> drafts = documents.drafts();
        if (drafts.size() > 1 || drafts.contains(DRAFT_4)) {
            throw OnlyInPython.keyword("$schema", drafts.size() == 1 ? "of draft 4" : "of several drafts");
        }
        if (documents.hasResources()) {
            throw OnlyInPython.keyword("$id", "inside a schema");
        }
        return new ValidSchema(documents, OLD.containsAll(drafts)).rules(documents.root()).toString();
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
            case "oneOf", "anyOf" ->
                add(made, keyword).put("rule", at.rule(keyword)).set("branches", branches(at, keyword));
            case "not" -> add(made, keyword).put("rule", at.rule(keyword)).put("detail", NOT_ALLOWED)
                .set("checks", rules(at.down(keyword)));
            case "items" -> {
                if (value.isArray()) {
                    throw OnlyInPython.keyword(keyword, "with several schemas");
                }
                add(made, keyword).set("checks", rules(at.down(keyword)));
            }
            case "properties" -> add(made, keyword).set("properties", properties(at));
            case "required" -> addRequired(made, at, value);
            case "additionalProperties" -> addAdditional(made, at, value);
            default -> { } // an annotation, or unknown to the drafts too
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
        at.tree().path("properties").fieldNames().forEachRemaining(name ->
            made.addObject().put("name", name).put("part", PythonText.fieldPart(name))
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

    private void addAdditional(ArrayNode made, ValidDocuments.At at, JsonNode value) {
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
}
