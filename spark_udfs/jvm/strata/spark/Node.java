package strata.spark;

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;

/**
 * One step of a program: takes a value of the writer schema from the bytes and writes it, as the reader schema has it,
 * into a slot of Spark's row or array.
 *
 * <p>Nodes hold the writers of the rows and arrays that they fill, all over one buffer: a program serves one thread.
 */
abstract class Node {
    /**
     * Read one value.
     *
     * @throws Damage when the bytes are no such value
     */
    abstract void read(Cursor in, UnsafeWriter out, int slot);

    /** Whether no value at all can come out: then another branch of a union is the better choice. */
    boolean failsAlways() {
        return false;
    }

    /** What cannot be resolved, and why; only a record that has it is at fault. */
    static final class Fail extends Node {
        private final String message;

        Fail(String message) {
            this.message = message;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            throw new Damage(Damage.RESOLUTION, message);
        }

        @Override
        boolean failsAlways() {
            return true;
        }
    }

    /** Null, in a slot of so many bytes; takes no bytes of the payload. */
    static final class Null extends Node {
        private final int width;

        Null(int width) {
            this.width = width;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            writeNull(out, slot, width);
        }
    }

    static void writeNull(UnsafeWriter out, int slot, int width) {
        switch (width) {
            case 1 -> out.setNull1Bytes(slot);
            case 4 -> out.setNull4Bytes(slot);
            default -> out.setNull8Bytes(slot);
        }
    }

    /** A union of the writer: one node for each of its branches. */
    static final class Branches extends Node {
        private final Node[] branches;

        Branches(Node[] branches) {
            this.branches = branches;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            branches[in.readIndex(branches.length)].read(in, out, slot);
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
        void read(Cursor in, UnsafeWriter out, int slot) {
            bytes.open(encoded, 0, false);
            value.read(bytes, out, slot);
        }
    }
}
