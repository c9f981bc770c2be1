package strata.spark;

/** Why one frame has no value: short for counting, and in full. */
final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1L;

    final String reason;
    final Integer schemaId;

    Refusal(String reason, Integer schemaId, String message) {
        super(message, null, false, false);
        this.reason = reason;
        this.schemaId = schemaId;
    }
}
