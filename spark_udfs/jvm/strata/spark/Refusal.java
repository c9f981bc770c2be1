package strata.spark;

import java.util.UUID;

/** Why one frame has no value: a short reason for counting, and the full message. */
final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1L;

    final String reason;
    final Object schema;

    /** @param schema the name of the schema in the frame, null if it cannot be read */
    Refusal(String reason, Object schema, String message) {
        super(message, null, false, false);
        this.reason = reason;
        this.schema = schema;
    }

    /** Return the same refusal of a frame whose schema is known. */
    Refusal of(Object named) {
        return new Refusal(reason, named, getMessage());
    }

    /** Return the schema id of the frame, or null if it has none. */
    Integer schemaId() {
        return schema instanceof Integer id ? id : null;
    }

    /** Return the words by which errors mention a schema. */
    static String named(Object schema) {
        return kind(schema) + " " + (schema == null ? "None" : schema);
    }

    /** Return the words for the kind of a name. */
    static String kind(Object schema) {
        if (schema instanceof FrameHeader.GlueVersion) {
            return "Glue schema version";
        }
        return schema instanceof UUID ? "schema guid" : "schema id";
    }
}
