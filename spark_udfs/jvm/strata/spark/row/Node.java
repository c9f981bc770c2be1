package strata.spark.row;

import java.util.Arrays;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;

/**
 * One step of a program: reads a value of the writer schema from the bytes and converts it to the reader schema, as the
 * word for a slot of Spark's row or array.
 *
 * <p>A program serves one thread.
 */
public abstract class Node {
    private final SimpleForm simpleForm;

    /** Make a node that generated code cannot replace. */
    public Node() {
        this(SimpleForm.NONE);
    }

    /** @param simpleForm how generated code reads the value */
    public Node(SimpleForm simpleForm) {
        this.simpleForm = simpleForm;
    }

    /**
     * Read one value.
     *
     * @param out receives a value without fixed size
     * @param base where the row or array of the slot begins
     * @return the slot's word, or {@link RowBuffer#nothing}
     * @throws Damage if the bytes are not such a value
     */
    public abstract long read(Cursor in, RowBuffer out, int base);

    /**
     * Check one value that the query does not read, without building it.
     *
     * @throws Damage if {@link #read} does
     */
    public void check(Cursor in, RowBuffer out) {
        discard(in, out);
    }

    /** Read one value and drop it. */
    public final void discard(Cursor in, RowBuffer out) {
        int start = out.at;
        read(in, out, start);
        out.drop(start);
    }

    /** Return whether reading always fails: another branch of a union is then the better choice. */
    public boolean failsAlways() {
        return false;
    }

    /** Return how generated code reads the value, or {@link SimpleForm#NONE} if it cannot. */
    public final SimpleForm simpleForm() {
        return simpleForm;
    }

    /** Return the node for the items of an array, which sometimes differ from the fields of a row. */
    public Node asItem() {
        return this;
    }

    /** A type that cannot be resolved, and why; it fails only the records that contain a value of it. */
    public static final class Fail extends Node {
        private final String message;

        public Fail(String message) {
            this.message = message;
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            throw new Damage(Damage.RESOLUTION, message);
        }

        @Override
        public boolean failsAlways() {
            return true;
        }
    }

    /** Null; takes no bytes of the payload. */
    public static final class Null extends Node {
        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            return out.nothing();
        }

        @Override
        public void check(Cursor in, RowBuffer out) {
            // It takes no bytes.
        }
    }

    /** A union of the writer: one node for each of its branches. */
    public static final class Branches extends Node {
        private final Node[] branches;

        public Branches(Node[] branches) {
            this.branches = branches;
        }

        /** Return the index byte that means null (0 or 2) in a union of null and one other type, else -1. */
        public int nullByte() {
            boolean isOptional = branches.length == 2 && branches[0] instanceof Null != branches[1] instanceof Null;
            return !isOptional ? -1 : branches[0] instanceof Null ? 0 : 2;
        }

        /** Return the branch that is not null. */
        public Node other() {
            return branches[branches[0] instanceof Null ? 1 : 0];
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            return branches[in.readIndex(branches.length)].read(in, out, base);
        }

        @Override
        public void check(Cursor in, RowBuffer out) {
            branches[in.readIndex(branches.length)].check(in, out);
        }

        @Override
        public Node asItem() {
            return new Branches(Arrays.stream(branches).map(Node::asItem).toArray(Node[]::new));
        }

        @Override
        public boolean failsAlways() {
            for (Node branch : branches) {
                if (!branch.failsAlways()) {
                    return false;
                }
            }
            return branches.length > 0;
        }
    }

    /** A field that the writer lacks: its default, as the driver encoded it. */
    public static final class Default extends Node {
        private final Node value;
        private final byte[] encoded;
        private final Cursor bytes = new Cursor();

        public Default(Node value, byte[] encoded) {
            this.value = value;
            this.encoded = encoded;
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            bytes.open(encoded, 0, false);
            return value.read(bytes, out, base);
        }
    }

    /**
     * The common form of a simple value in the bytes, as numbers, from which {@code FieldSource} generates code.
     *
     * @param most its size in bytes, or for a varint the maximum size
     * @param factor what a number is multiplied by, or the bound of a decimal
     * @param mask the bits to keep of the next eight bytes, or of the number
     */
    public record SimpleForm(Kind kind, int most, long factor, long mask) {
        /** What a value is; {@code OTHER} is not simple. */
        public enum Kind {
            OTHER,
            NUMBER,
            FIXED,
            TEXT,
            SYMBOL,
            DECIMAL,
            FLAG,
            SKIPPED_BYTES
        }

        private static final long BYTE = 0xFF;
        private static final long INT = 0xFFFFFFFFL;
        private static final long ALL = -1;

        public static final SimpleForm NONE = new SimpleForm(Kind.OTHER, 0, 1, ALL);
        public static final SimpleForm FLAG = new SimpleForm(Kind.FLAG, 1, 1, BYTE);
        /** Text after its length. */
        public static final SimpleForm TEXT = new SimpleForm(Kind.TEXT, 0, 1, ALL);
        /** A symbol of {@code Scalars.EnumNode}. */
        public static final SimpleForm SYMBOL = new SimpleForm(Kind.SYMBOL, 1, 1, ALL);
        /** Bytes or text that no column needs. */
        public static final SimpleForm SKIPPED_BYTES = new SimpleForm(Kind.SKIPPED_BYTES, 0, 1, ALL);

        /**
         * An integer of up to 28 bits for an int and 56 for a long, which is never out of range.
         *
         * @param factor up to a thousand, so that the product is not out of range either
         */
        public static SimpleForm number(boolean narrow, boolean narrowOut, long factor) {
            boolean isSafe = factor == 1 || !narrowOut && factor > 0 && factor <= 1000;
            boolean isShort = narrow || factor == 1;
            return isSafe
                    ? new SimpleForm(Kind.NUMBER, narrow ? 4 : isShort ? 8 : 7, factor, narrowOut ? INT : ALL)
                    : NONE;
        }

        /** A value of fixed size: four or eight bytes, or any number if it is skipped. */
        public static SimpleForm fixed(int size) {
            return size == 0 ? NONE : new SimpleForm(Kind.FIXED, size, 1, size == 4 ? INT : ALL);
        }

        /** A decimal of up to 7 bytes after its length, below a power of ten. */
        public static SimpleForm decimal(long bound) {
            return new SimpleForm(Kind.DECIMAL, 0, bound, ALL);
        }

        /** Return the number in {@code size} bytes after the first byte of a word. */
        public static long decimal(long word, int size) {
            return Long.reverseBytes(word) << 8 >> 64 - 8 * size;
        }
    }
}
