package strata.spark;

/** One field of a record, in the writer's order. */
final class Step {
    /** Of the writer's field. */
    final String name;
    /** Null for a field that is skipped. */
    final Node value;
    /** Null for a field that is read. */
    final Skip skip;
    /** Of the reader's field. */
    final int slot;
    /** How far from its row's beginning that field's word stands. */
    int place;
    /** Whether it is one of several fields of the reader that are read from the same bytes. */
    final boolean isShared;
    /** Whether the bytes of the step before are read once more, for a second field of the reader. */
    final boolean again;

    /** The byte that says null, 0 or 2, of a union of null and one other type; -1 for any other value. */
    final int nullByte;
    /** What is read beside null, or the value itself. */
    final Node inner;
    /** Of an enum. */
    final Scalars.EnumNode symbols;
    final Shortcut shortcut;
    // The same, unfolded; the masks are for a machine that writes the low byte first.
    final int kind;
    final int most;
    final long factor;
    final long mask;

    private Step(String name, Node value, Skip skip, int slot, boolean shared, boolean again, Shortcut shortcut) {
        this.name = name;
        this.value = value;
        this.skip = skip;
        this.slot = slot;
        this.isShared = shared;
        this.again = again;
        nullByte = skip != null ? skip.nullByte() : value instanceof Node.Branches union && !shared ? union.nullByte() : -1;
        inner = inner(value);
        symbols = inner instanceof Scalars.EnumNode node ? node : null;
        this.shortcut = shortcut;
        kind = RowBuffer.LITTLE ? shortcut.kind() : Shortcut.OTHER;
        most = shortcut.most();
        factor = shortcut.factor();
        mask = shortcut.mask();
    }

    /** The value beside null. */
    private static Node inner(Node value) {
        return value instanceof Node.Branches union && union.nullByte() >= 0 ? union.other() : value;
    }

    static Step read(String name, Node value, int slot) {
        return new Step(name, value, null, slot, false, false, inner(value).shortcut());
    }

    /** A field of the writer's that feeds several fields of the reader's: none of it is read on the short way. */
    static Step share(String name, Node value, int slot, boolean first) {
        return new Step(name, value, null, slot, true, !first, Shortcut.NONE);
    }

    static Step skip(String name, Skip skip) {
        return new Step(name, null, skip, -1, false, false, skip.shortcut());
    }
}
