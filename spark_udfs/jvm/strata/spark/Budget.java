package strata.spark;

/** A limit on the size of a program: types nested in types multiply. */
final class Budget {
    private int left = Limits.NODES;

    void spend() {
        if (--left < 0) {
            throw new UnusableSchema("the schemas are too large to resolve against each other");
        }
    }
}
