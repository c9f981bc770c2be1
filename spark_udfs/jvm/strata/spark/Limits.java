package strata.spark;

/** Limits on what a payload, and the program that reads it, may use. */
final class Limits {
    /** How deep records of a recursive type may be nested. */
    static final int DEPTH = 200;
    /** How many values without bytes a payload may hold. */
    static final int WEIGHTLESS = 10_000;
    /** How many values without bytes a type may hold: records of records of nulls multiply. */
    static final int WEIGHTLESS_TYPE = 1000;
    /** How many bytes a decoded value may take. */
    static final int OUTPUT = 256 * 1024 * 1024;
    /** How many bytes the payload of a compressed frame may have, as in serdes/framing.py. */
    static final int INFLATED = 16 * 1024 * 1024;
    /** How many nodes a program may have: types nested in types multiply. */
    static final int NODES = 200_000;

    private Limits() {}
}
