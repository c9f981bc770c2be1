package strata.spark;

/** How large a program may grow: types inside types multiply. */
final class Budget {
    private int left = Limits.NODES;

    void spend() {
        if (--left < 0) {
            throw new UnusableSchema("the schemas are too large to resolve against each other");
        }
    }
}
