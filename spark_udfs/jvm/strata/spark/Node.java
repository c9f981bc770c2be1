package strata.spark;

import java.util.Arrays;

/**
 * One step of a program: takes a value of the writer schema from the bytes and makes of it, as the reader schema has it,
 * the word for a slot of Spark's row or array.
 *
 * <p>A program serves one thread.
 */
abstract class Node {
    /**
     * Read one value.
     *
     * @param out takes what has no fixed size
     * @param base where the row or array stands whose slot it is
     * @return the slot's word, or {@link RowBuffer#nothing}
     * @throws Damage when the bytes are no such value
     */
    abstract long read(Cursor in, RowBuffer out, int base);

    /** Whether no value at all can come out: then another branch of a union is the better choice. */
    boolean failsAlways() {
        return false;
    }

    /** How made code reads it, {@link Shortcut#NONE} if it is not so simple. */
    Shortcut shortcut() {
        return Shortcut.NONE;
    }

    /** The same for the items of an array, which are not always written as the fields of a row are. */
    Node asItem() {
        return this;
    }

    /** What cannot be resolved, and why; only a record that has it is at fault. */
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
    }

    /** A union of the writer: one node for each of its branches. */
    static final class Branches extends Node {
        private final Node[] branches;

        Branches(Node[] branches) {
            this.branches = branches;
        }

        /** The byte that says null, 0 or 2, if this is a union of null and one other type; else -1. */
        int nullByte() {
            boolean isOptional = branches.length == 2 && branches[0] instanceof Null != branches[1] instanceof Null;
            return !isOptional ? -1 : branches[0] instanceof Null ? 0 : 2;
        }

        /** What is beside null. */
        Node other() {
            return branches[branches[0] instanceof Null ? 1 : 0];
        }

        @Override
        long read(Cursor in, RowBuffer out, int base) {
            return branches[in.readIndex(branches.length)].read(in, out, base);
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

    /** A field that the writer does not have: its default, as the driver has encoded it. */
    static final class Default extends Node {
        private final Node value;
        private final byte[] encoded;
        private final Cursor bytes = new Cursor(Limits.DEFAULT);

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
