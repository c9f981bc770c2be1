package strata.spark;

/** A writer schema with which no frame can be decoded. */
final class UnusableSchema extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnusableSchema(String message) {
        super(message);
    }
}
