package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;

/** The dialects of JSON Schema, by {@code compat/json_schema/dialects.py}. */
enum JsonDialect {
    DRAFT_4("json-schema.org/draft-04/schema", "json-schema.org/schema"),
    DRAFT_6("json-schema.org/draft-06/schema"),
    DRAFT_7("json-schema.org/draft-07/schema"),
    DRAFT_2019_09("json-schema.org/draft/2019-09/schema"),
    DRAFT_2020_12("json-schema.org/draft/2020-12/schema");

    private final String[] starts;

    JsonDialect(String... starts) {
        this.starts = starts;
    }

    /** Return whether the registry reads the dialect by its newer rules. */
    boolean isModern() {
        return compareTo(DRAFT_2019_09) >= 0;
    }

    /** Return the keyword that names a schema. */
    String idKeyword() {
        return this == DRAFT_4 ? "id" : "$id";
    }

    /** Return the dialect of a document. */
    static JsonDialect of(JsonNode root) {
        JsonDialect own = named(root);
        return own == null ? DRAFT_7 : own;
    }

    /** Return the dialect in which to read a document that another one refers to. */
    static JsonDialect within(JsonNode root, JsonDialect referring) {
        JsonDialect own = named(root);
        return own != null && !own.isModern() && !referring.isModern() ? own : referring;
    }

    private static JsonDialect named(JsonNode root) {
        String uri = root.path("$schema").asText("");
        String rest = uri.startsWith("http://") ? uri.substring(7) : uri.startsWith("https://") ? uri.substring(8) : "";
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
