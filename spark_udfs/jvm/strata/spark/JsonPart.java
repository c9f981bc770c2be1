package strata.spark;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A part of a JSON Schema, as far as columns depend on it, by {@code compat/json_schema/model.py}. Parts compare by
 * identity: one that is reached twice through {@code $ref} is one part.
 */
final class JsonPart {
    enum Kind { STRING, INTEGER, NUMBER, BOOLEAN, NULL, OBJECT, ARRAY, VALUES, ALL, ANY, REFERENCE, OTHER }

    final Kind kind;
    /** The branches of ALL and ANY, the first items of an ARRAY (null unless it names them), an OBJECT's patterns. */
    List<JsonPart> branches;
    /** The properties of an OBJECT. */
    Map<String, JsonPart> properties = new LinkedHashMap<>();
    /** What else an OBJECT or ARRAY may have; null if {@code isOpen} says it. */
    JsonPart rest;
    /** Whether an OBJECT or ARRAY may have anything else. */
    boolean isOpen;
    /** The schema of every item of an ARRAY, or null. */
    JsonPart items;
    /** The kinds of VALUES. */
    List<Kind> values = List.of();
    /** What a REFERENCE means; null until it is known. */
    JsonPart target;

    JsonPart(Kind kind) {
        this.kind = kind;
    }

    static JsonPart of(Kind kind, List<JsonPart> branches) {
        JsonPart part = new JsonPart(kind);
        part.branches = branches;
        return part;
    }

    /** Return another part with the same content. */
    JsonPart copy() {
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
