package strata.spark;

import java.util.Arrays;

/**
 * One step of a program: reads a value of the writer schema from the bytes and converts it to the reader schema, as the
 * word for a slot of Spark's row or array.
 *
 * <p>A program serves one thread.
 */
abstract class Node {
    private final Shortcut shortcut;

    /** Make a node that generated code cannot replace. */
    Node() {
        this(Shortcut.NONE);
    }

    /** @param shortcut how generated code reads the value */
    Node(Shortcut shortcut) {
        this.shortcut = shortcut;
    }

    /**
     * Read one value.
     *
     * @param out receives a value without fixed size
     * @param base where the row or array of the slot begins
     * @return the slot's word, or {@link RowBuffer#nothing}
     * @throws Damage if the bytes are not such a value
     */
    abstract long read(Cursor in, RowBuffer out, int base);

    /**
     * Check one value that the query does not read, without building it.
     *
     * @throws Damage if {@link #read} does
     */
    void check(Cursor in, RowBuffer out) {
        discard(in, out);
    }

    /** Read one value and drop it. */
    final void discard(Cursor in, RowBuffer out) {
        int start = out.at;
        read(in, out, start);
        out.drop(start);
    }

    /** Return whether reading always fails: another branch of a union is then the better choice. */
    boolean failsAlways() {
        return false;
    }

    /** Return how generated code reads the value, or {@link Shortcut#NONE} if it cannot. */
    final Shortcut shortcut() {
        return shortcut;
    }

    /** Return the node for the items of an array, which sometimes differ from the fields of a row. */
    Node asItem() {
        return this;
    }

    /** A type that cannot be resolved, and why; it fails only the records that contain a value of it. */
    static final class Fail extends Node {
        private final String message;

        Fail(String message) {
            this.message = message;
        }

        @Override
        long read(Cursor in, RowBuffer out, int base) {
            throw new Damage(Damage.RESOLUTION, message);
        }

        @Override
        boolean failsAlways() {
            return true;
        }
    }

    /** Null; takes no bytes of the payload. */
    static final class Null extends Node {
        @Override
        long read(Cursor in, RowBuffer out, int base) {
            return out.nothing();
        }

        @Override
        void check(Cursor in, RowBuffer out) {
            // It takes no bytes.
        }
    }

    /** A union of the writer: one node for each of its branches. */
    static final class Branches extends Node {
        private final Node[] branches;

        Branches(Node[] branches) {
            this.branches = branches;
        }

        /** Return the index byte that means null (0 or 2) in a union of null and one other type, else -1. */
        int nullByte() {
            boolean isOptional = branches.length == 2 && branches[0] instanceof Null != branches[1] instanceof Null;
            return !isOptional ? -1 : branches[0] instanceof Null ? 0 : 2;
        }

        /** Return the branch that is not null. */
        Node other() {
            return branches[branches[0] instanceof Null ? 1 : 0];
        }

        @Override
        long read(Cursor in, RowBuffer out, int base) {
            return branches[in.readIndex(branches.length)].read(in, out, base);
        }

        @Override
        void check(Cursor in, RowBuffer out) {
            branches[in.readIndex(branches.length)].check(in, out);
        }

        @Override
        Node asItem() {
            return new Branches(Arrays.stream(branches).map(Node::asItem).toArray(Node[]::new));
        }

        @Override
        boolean failsAlways() {
            for (Node branch : branches) {
                if (!branch.failsAlways()) {
                    return false;
                }
            }
            return branches.length > 0;
        }
    }

    /** A field that the writer lacks: its default, as the driver encoded it. */
    static final class Default extends Node {
        private final Node value;
        private final byte[] encoded;
        private final Cursor bytes = new Cursor();

        Default(Node value, byte[] encoded) {
            this.value = value;
            this.encoded = encoded;
        }

        @Override
        long read(Cursor in, RowBuffer out, int base) {
            bytes.open(encoded, 0, false);
            return value.read(bytes, out, base);
        }
    }
}
