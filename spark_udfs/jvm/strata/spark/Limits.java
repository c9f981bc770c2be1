package strata.spark;

/**
 * Limits on what a payload may use beyond what its own length bounds.
 *
 * @param depth how deep records of a recursive type may be nested
 * @param weightless how many values without bytes a payload may hold
 * @param output how many bytes a decoded value may take
 */
record Limits(int depth, int weightless, int output) {
    static final Limits DEFAULT = new Limits(200, 10_000, 256 * 1024 * 1024);
    /** How many values without bytes a type may hold: records of records of nulls multiply. */
    static final int WEIGHTLESS_TYPE = 1000;
    /** How many nodes a program may have. */
    static final int NODES = 200_000;
}
