package strata.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;
import org.apache.spark.sql.types.Decimal;

/** Values that hold no others. */
final class Scalars {
    private Scalars() {}

    static final class BooleanNode extends Node {
        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            out.write(slot, in.readBoolean());
        }
    }

    /** An int, or a date, or a time in milliseconds. */
    static final class IntNode extends Node {
        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            out.write(slot, in.readInt());
        }
    }

    /** A long; or an int read as one. */
    static final class LongNode extends Node {
        private final boolean narrow;

        LongNode(boolean narrow) {
            this.narrow = narrow;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            out.write(slot, narrow ? in.readInt() : in.readLong());
        }
    }

    /** A time that moves from the writer's unit to that of the column; finer units are rounded down. */
    static final class TimeNode extends Node {
        private final boolean narrow;
        private final boolean narrowOut;
        private final long[] factors;

        /**
         * @param narrow the writer's type is int
         * @param narrowOut the column is one of ints
         * @param factors one after the other: a factor, or if negative a divisor
         */
        TimeNode(boolean narrow, boolean narrowOut, long... factors) {
            this.narrow = narrow;
            this.narrowOut = narrowOut;
            this.factors = factors;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            long time = narrow ? in.readInt() : in.readLong();
            try {
                for (long factor : factors) {
                    time = factor > 0 ? Math.multiplyExact(time, factor) : Math.floorDiv(time, -factor);
                }
                if (narrowOut) {
                    out.write(slot, Math.toIntExact(time));
                } else {
                    out.write(slot, time);
                }
            } catch (ArithmeticException tooLarge) {
                throw new Damage(Damage.OUT_OF_RANGE, "a time outside what the column holds");
            }
        }
    }

    /** A float, or an int or long read as one. */
    static final class FloatNode extends Node {
        private final Numbers from;

        FloatNode(Numbers from) {
            this.from = from;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            out.write(slot, switch (from) {
                case INT -> (float) (double) in.readInt();
                // By way of double, as the other paths have it: twice rounded, and the same everywhere.
                case LONG -> (float) (double) in.readLong();
                default -> in.readFloat();
            });
        }
    }

    /** A number of any kind read as a double. */
    static final class DoubleNode extends Node {
        private final Numbers from;

        DoubleNode(Numbers from) {
            this.from = from;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            out.write(slot, switch (from) {
                case INT -> (double) in.readInt();
                case LONG -> (double) in.readLong();
                case FLOAT -> (double) in.readFloat();
                case DOUBLE -> in.readDouble();
            });
        }
    }

    /** The kinds of number that Avro writes. */
    enum Numbers { INT, LONG, FLOAT, DOUBLE }

    /** How many bytes a value of bytes, string or fixed takes. */
    static final class Extent {
        static final int PREFIXED = -1;
        static final int REST = -2;

        private Extent() {}

        static int read(Cursor in, int size) {
            return size >= 0 ? size : size == PREFIXED ? in.readLength() : in.left();
        }
    }

    /** Bytes or fixed: so many, or as many as a length says, or all that are left. */
    static final class BytesNode extends Node {
        private final int size;

        BytesNode(int size) {
            this.size = size;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            int length = Extent.read(in, size);
            out.write(slot, in.bytes, in.take(length), length);
        }
    }

    static final class StringNode extends Node {
        private final int size;

        StringNode(int size) {
            this.size = size;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            int length = Extent.read(in, size);
            int start = in.take(length);
            in.requireText(start, length);
            out.write(slot, in.bytes, start, length);
        }
    }

    /** An index into the writer's symbols, read as the reader's symbol for each. */
    static final class EnumNode extends Node {
        private final String[] written;
        private final byte[][] read;

        EnumNode(String[] written, String[] symbols) {
            this.written = written;
            this.read = Arrays.stream(symbols)
                .map(symbol -> symbol == null ? null : symbol.getBytes(StandardCharsets.UTF_8))
                .toArray(byte[][]::new);
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            int index = in.readIndex(read.length);
            byte[] symbol = read[index];
            if (symbol == null) {
                throw new Damage(
                    Damage.RESOLUTION, "the reader's enum has no symbol " + written[index] + " and no default");
            }
            out.write(slot, symbol);
        }
    }

    /** A decimal over bytes or fixed, moved from the writer's scale to the reader's. */
    static final class DecimalNode extends Node {
        private static final int LONG_DIGITS = 18;

        private final int size;
        private final int precision;
        private final int scale;
        private final int writerScale;
        private final BigInteger bound;
        private final int mostBytes;

        DecimalNode(int size, int precision, int scale, int writerScale) {
            this.size = size;
            this.precision = precision;
            this.scale = scale;
            this.writerScale = writerScale;
            this.bound = BigInteger.TEN.pow(precision);
            // A hostile length must not reach the arithmetic.
            this.mostBytes = bound.multiply(BigInteger.TEN.pow(Math.max(writerScale - scale, 0))).bitLength() / 8 + 1;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            int length = Extent.read(in, size);
            int start = in.take(length);
            if (length > 0 && length <= 7 && writerScale == scale && precision <= LONG_DIGITS) {
                writeShort(in.bytes, start, length, out, slot);
            } else {
                writeLong(in.bytes, start, length, out, slot);
            }
        }

        private void writeShort(byte[] bytes, int start, int length, UnsafeWriter out, int slot) {
            long unscaled = bytes[start];
            for (int i = 1; i < length; i++) {
                unscaled = unscaled << 8 | (bytes[start + i] & 0xFF);
            }
            if (Math.abs(unscaled) >= bound.longValue()) {
                throw tooLong();
            }
            out.write(slot, unscaled);
        }

        private void writeLong(byte[] bytes, int start, int length, UnsafeWriter out, int slot) {
            int from = start;
            int stop = start + length;
            byte sign = (byte) (length > 0 ? bytes[start] >> 7 : 0);
            while (from < stop - 1 && bytes[from] == sign && bytes[from + 1] >> 7 == sign) {
                from++;
            }
            if (stop - from > mostBytes) {
                throw tooLong();
            }
            BigInteger unscaled = length == 0 ? BigInteger.ZERO : new BigInteger(bytes, from, stop - from);
            if (writerScale < scale) {
                unscaled = unscaled.multiply(BigInteger.TEN.pow(scale - writerScale));
            } else if (writerScale > scale) {
                BigInteger[] parts = unscaled.divideAndRemainder(BigInteger.TEN.pow(writerScale - scale));
                if (parts[1].signum() != 0) {
                    throw new Damage(
                        Damage.OUT_OF_RANGE, "a decimal has more than " + scale + " digits after the point");
                }
                unscaled = parts[0];
            }
            if (unscaled.abs().compareTo(bound) >= 0) {
                throw tooLong();
            }
            out.write(slot, Decimal.apply(new BigDecimal(unscaled, scale), precision, scale), precision, scale);
        }

        private Damage tooLong() {
            return new Damage(Damage.OUT_OF_RANGE, "a decimal has more than " + precision + " digits");
        }
    }
}
