package strata.spark;

import java.math.BigInteger;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;

/** Writes the values of one column, or of one part of it, as one Avro type. */
abstract class EncodeNode {
    static final String IS_NULL = "expected a value, got null";

    /** The path of the field, for errors. */
    final String path;

    EncodeNode(String path) {
        this.path = path;
    }

    /** Write the value at a place, which may be null. */
    final void write(SpecializedGetters from, int i, EncodeOutput out) {
        if (from.isNullAt(i)) {
            writeNull(out);
        } else {
            writeValue(from, i, out);
        }
    }

    abstract void writeValue(SpecializedGetters from, int i, EncodeOutput out);

    void writeNull(EncodeOutput out) {
        out.refuse(IS_NULL, path);
    }

    /** The type null. */
    static final class Null extends EncodeNode {
        Null(String path) {
            super(path);
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            out.refuse("expected null, got a value", path);
        }

        @Override
        void writeNull(EncodeOutput out) {
            // It has no bytes.
        }
    }

    /** An int or a long. */
    static final class Whole extends EncodeNode {
        private final EncodeSource.Whole source;
        private final long low;
        private final long high;

        Whole(String path, EncodeSource.Whole source, long low, long high) {
            super(path);
            this.source = source;
            this.low = low;
            this.high = high;
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            long number = source.get(from, i, out);
            if (number < low || number > high) {
                out.refuse("a value is out of range", path);
            }
            out.putLong(number);
        }
    }

    /** A float or a double. */
    static final class Real extends EncodeNode {
        private final EncodeSource.Real source;
        private final boolean isDouble;

        Real(String path, EncodeSource.Real source, boolean isDouble) {
            super(path);
            this.source = source;
            this.isDouble = isDouble;
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            double number = source.get(from, i, out);
            if (isDouble) {
                out.putFixed8(Double.doubleToRawLongBits(number));
            } else {
                out.putFixed4(Float.floatToRawIntBits((float) number));
            }
        }
    }

    static final class Flag extends EncodeNode {
        Flag(String path) {
            super(path);
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            out.putByte(from.getBoolean(i) ? 1 : 0);
        }
    }

    /** A string, of a column of strings or, if {@code misfit} is given, of bytes. */
    static final class Text extends EncodeNode {
        private final EncodeSource.Misfit misfit;

        Text(String path, EncodeSource.Misfit misfit) {
            super(path);
            this.misfit = misfit;
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            UTF8String text = text(from, i, misfit, out);
            out.putLong(text.numBytes());
            out.putRaw(text);
        }
    }

    private static UTF8String text(SpecializedGetters from, int i, EncodeSource.Misfit misfit, EncodeOutput out) {
        if (misfit == null) {
            return from.getUTF8String(i);
        }
        UTF8String text = UTF8String.fromBytes(from.getBinary(i));
        if (!EncodeOutput.isText(text)) {
            misfit.refuse(out);
        }
        return text;
    }

    /** Bytes or a fixed. */
    static final class Bytes extends EncodeNode {
        private final boolean isText;
        private final int size;

        /**
         * @param isText whether the column holds strings
         * @param size the size of a fixed, {@link Scalars#PREFIXED}, or {@link Scalars#REST} for no length
         */
        Bytes(String path, boolean isText, int size) {
            super(path);
            this.isText = isText;
            this.size = size;
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            byte[] content = isText ? from.getUTF8String(i).getBytes() : from.getBinary(i);
            if (size == Scalars.PREFIXED) {
                out.putLong(content.length);
            } else if (size != Scalars.REST && size != content.length) {
                out.refuse("expected bytes of another size", path);
            }
            out.putRaw(content);
        }
    }

    /** A decimal, as the fewest bytes, or as many as a fixed has. */
    static final class Decimal extends EncodeNode {
        private static final int QUICK = 18;

        private final EncodeSource.Exact source;
        private final DecimalType same;
        private final int size;

        /**
         * @param same the column's type if it has the schema's scale and at most so many digits, else null
         * @param size as for {@link Bytes}
         */
        Decimal(String path, EncodeSource.Exact source, DecimalType same, int size) {
            super(path);
            this.source = source;
            this.same = same;
            this.size = size;
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            if (same != null && same.precision() <= QUICK) {
                long number = from.getDecimal(i, same.precision(), same.scale()).toUnscaledLong();
                int needed = (Long.SIZE - Long.numberOfLeadingZeros(number < 0 ? ~number : number)) / 8 + 1;
                out.putBigEndian(number, begin(needed, out));
                return;
            }
            BigInteger number = source.get(from, i, out);
            byte[] content = number.toByteArray();
            int left = begin(content.length, out) - content.length;
            for (; left > 0; left--) {
                out.putByte(number.signum() < 0 ? -1 : 0);
            }
            out.putRaw(content);
        }

        /** Write the length, if it is wanted; return how many bytes to write. */
        private int begin(int needed, EncodeOutput out) {
            if (size == Scalars.PREFIXED) {
                out.putLong(needed);
            }
            if (size >= 0 && needed > size) {
                out.refuse("a value is out of range", path);
            }
            return size >= 0 ? size : needed;
        }
    }

    /** An enum. */
    static final class Symbol extends EncodeNode {
        private static final String NO_SYMBOL = "expected a symbol of the enum";

        private final Map<UTF8String, Integer> symbols = new HashMap<>();
        private final EncodeSource.Misfit misfit;

        Symbol(String path, List<String> symbols, EncodeSource.Misfit misfit) {
            super(path);
            for (int i = 0; i < symbols.size(); i++) {
                this.symbols.put(UTF8String.fromString(symbols.get(i)), i);
            }
            this.misfit = misfit;
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            Integer index = symbols.get(text(from, i, misfit, out));
            if (index == null) {
                out.refuse(NO_SYMBOL, path);
            } else {
                out.putLong(index);
            }
        }

        @Override
        void writeNull(EncodeOutput out) {
            out.refuse(NO_SYMBOL, path);
        }
    }
}
