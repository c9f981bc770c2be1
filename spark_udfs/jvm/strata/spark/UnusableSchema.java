package strata.spark;

/** A schema that no frame can be decoded with. */
final class UnusableSchema extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnusableSchema(String message) {
        super(message);
    }
}
