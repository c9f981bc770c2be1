package strata.spark;

import java.util.UUID;

/** Why one frame has no value: short for counting, and in full. */
final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1L;

    final String reason;
    final Object schema;

    /**
     * @param schema the id or the GUID of the frame; null when it has none that can be read
     */
    Refusal(String reason, Object schema, String message) {
        super(message, null, false, false);
        this.reason = reason;
        this.schema = schema;
    }

    /** The id of the frame, null for none and for a GUID. */
    Integer schemaId() {
        return schema instanceof Integer id ? id : null;
    }

    /** Which schema the frame names. */
    String place() {
        return named(schema);
    }

    static String named(Object schema) {
        return schema instanceof UUID ? "schema guid " + schema : "schema id " + (schema == null ? "None" : schema);
    }
}
