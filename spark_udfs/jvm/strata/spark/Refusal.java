package strata.spark;

import java.util.UUID;

/** Why one frame has no value: a short reason for counting, and the full message. */
final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1L;

    final String reason;
    final Object schema;

    /** @param schema the id or GUID in the frame, null if it cannot be read */
    Refusal(String reason, Object schema, String message) {
        super(message, null, false, false);
        this.reason = reason;
        this.schema = schema;
    }

    /** Return the schema id of the frame, or null if it has none or a GUID. */
    Integer schemaId() {
        return schema instanceof Integer id ? id : null;
    }

    /** Return the words by which errors mention a schema. */
    static String named(Object schema) {
        return schema instanceof UUID ? "schema guid " + schema : "schema id " + (schema == null ? "None" : schema);
    }
}
