package strata.spark.bytes;

/** A writer schema with which no frame can be decoded. */
public class UnusableSchema extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public UnusableSchema(String message) {
        super(message);
    }
}
