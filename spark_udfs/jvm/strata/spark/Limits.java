package strata.spark;

/**
 * What a payload may ask for beyond what its own length bounds.
 *
 * @param depth how many records of a recursive type may stand inside each other
 * @param weightless how many values that take no bytes one payload may hold
 * @param output how many bytes one decoded value may take
 */
record Limits(int depth, int weightless, int output) {
    static final Limits DEFAULT = new Limits(200, 10_000, 256 * 1024 * 1024);
    /** How many values a type may hold that takes no bytes: records of records of nulls multiply. */
    static final int WEIGHTLESS_TYPE = 1000;
    /** How many nodes a program may have. */
    static final int NODES = 200_000;
}
