package strata.spark;

/**
 * One field of a record, in the writer's order.
 *
 * @param name the name of the writer's field
 * @param value null for a field that is skipped
 * @param skip null for a field that is read or checked
 * @param slot the slot of the reader's field, -1 for a field that is skipped, or checked because the query does not
 * read it
 * @param isShared whether several fields of the reader are read from the same bytes
 * @param again whether it is not the first of them: it reads the bytes of the step before again
 */
record Step(String name, Node value, Skip skip, int slot, boolean isShared, boolean again) {
    static Step read(String name, Node value, int slot) {
        return new Step(name, value, null, slot, false, false);
    }

    /** Return a step of a writer's field that feeds several fields of the reader. */
    static Step share(String name, Node value, int slot, boolean first) {
        return new Step(name, value, null, slot, true, !first);
    }

    /** Return the step that checks what this one reads. */
    Step checked() {
        return new Step(name, value, null, -1, isShared, again);
    }

    static Step skip(String name, Skip skip) {
        return new Step(name, null, skip, -1, false, false);
    }

    /** Check the value without building it, or skip it. */
    void pass(Cursor in, RowBuffer out) {
        if (value == null) {
            skip.pass(in);
        } else if (in.tracing) {
            value.discard(in, out);
        } else {
            value.check(in, out);
        }
    }

    /** Return the index byte that means null (0 or 2) in a union of null and one other type, else -1. */
    int nullByte() {
        if (value == null) {
            return skip.nullByte();
        }
        return value instanceof Node.Branches union ? union.nullByte() : -1;
    }

    /** Return the node of the branch that is not null, or of the value itself; null for a field that is skipped. */
    Node inner() {
        return value instanceof Node.Branches union && union.nullByte() >= 0 ? union.other() : value;
    }

    /** Return the shortcut of the branch that is not null, or of the value itself. */
    Shortcut shortcut() {
        return value == null ? skip.shortcut() : inner().shortcut();
    }
}
