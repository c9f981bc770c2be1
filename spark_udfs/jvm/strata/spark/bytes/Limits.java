package strata.spark.bytes;

/** Limits on what a payload, and the program that reads it, may use. */
public final class Limits {
    /** How deep records of a recursive type may be nested. */
    static final int DEPTH = 200;
    /** How many values without bytes a payload may hold. */
    public static final int WEIGHTLESS = 10_000;
    /** How many values without bytes a type may hold: records of records of nulls multiply. */
    public static final int WEIGHTLESS_TYPE = 1000;
    /** How many bytes a decoded value may take. */
    public static final int OUTPUT = 256 * 1024 * 1024;
    /** How many bytes the payload of a compressed frame may have, as in serdes/framing.py. */
    public static final int INFLATED = 16 * 1024 * 1024;
    /** How many nodes a program may have: types nested in types multiply. */
    public static final int NODES = 200_000;

    private Limits() {}

    /** A limit on the size of a program: types nested in types multiply. */
    public static final class Budget {
        private int left = Limits.NODES;

        public void spend() {
            if (--left < 0) {
                throw new UnusableSchema("the schemas are too large to resolve against each other");
            }
        }
    }

    /** A writer schema with which no frame can be decoded. */
    public static class UnusableSchema extends RuntimeException {
        private static final long serialVersionUID = 1L;

        public UnusableSchema(String message) {
            super(message);
        }
    }
}
