package strata.spark.avro;

import java.math.BigInteger;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.write.EncodeOutput;
import strata.spark.write.EncodeOutput.EncodeFailure;
import strata.spark.write.EncodeSource;

/** Writes the values of one column, or of one part of it, as one Avro type. */
abstract class EncodeNode {

    /** The path of the field, for errors. */
    public final String path;

    EncodeNode(String path) {
        this.path = path;
    }

    /** Write the value at a place, which may be null. */
    public final void write(SpecializedGetters from, int i, EncodeOutput out) {
        if (from.isNullAt(i)) {
            writeNull(out);
        } else {
            writeValue(from, i, out);
        }
    }

    abstract void writeValue(SpecializedGetters from, int i, EncodeOutput out);

    void writeNull(EncodeOutput out) {
        out.refuse(EncodeFailure.IS_NULL, path);
    }

    /** The type null. */
    public static final class Null extends EncodeNode {
        public Null(String path) {
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
    public static final class Whole extends EncodeNode {
        private final EncodeSource.Whole source;
        private final long low;
        private final long high;

        public Whole(String path, EncodeSource.Whole source, long low, long high) {
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
    public static final class Real extends EncodeNode {
        private final EncodeSource.Real source;
        private final boolean isDouble;

        public Real(String path, EncodeSource.Real source, boolean isDouble) {
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

    public static final class Flag extends EncodeNode {
        public Flag(String path) {
            super(path);
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            out.putByte(from.getBoolean(i) ? 1 : 0);
        }
    }

    /** A string, of a column of strings or, if {@code conversion} is given, of bytes. */
    public static final class Text extends EncodeNode {
        private final EncodeSource.Conversion conversion;

        public Text(String path, EncodeSource.Conversion conversion) {
            super(path);
            this.conversion = conversion;
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            UTF8String text = text(from, i, conversion, out);
            out.putLong(text.numBytes());
            out.putRaw(text);
        }
    }

    private static UTF8String text(
            SpecializedGetters from, int i, EncodeSource.Conversion conversion, EncodeOutput out) {
        if (conversion == null) {
            return from.getUTF8String(i);
        }
        UTF8String text = UTF8String.fromBytes(from.getBinary(i));
        if (!EncodeOutput.isText(text)) {
            conversion.refuse(out);
        }
        return text;
    }

    /** Bytes or a fixed. */
    public static final class Bytes extends EncodeNode {
        private final boolean isText;
        private final int size;

        /**
         * @param isText whether the column holds strings
         * @param size the size of a fixed, {@link Scalars#PREFIXED}, or {@link Scalars#REST} for no length
         */
        public Bytes(String path, boolean isText, int size) {
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
    public static final class Decimal extends EncodeNode {
        private static final int QUICK = 18;

        private final EncodeSource.Exact source;
        private final DecimalType same;
        private final int size;

        /**
         * @param same the column's type if it has the schema's scale and at most so many digits, else null
         * @param size as for {@link Bytes}
         */
        public Decimal(String path, EncodeSource.Exact source, DecimalType same, int size) {
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
        private final EncodeSource.Conversion conversion;

        Symbol(String path, List<String> symbols, EncodeSource.Conversion conversion) {
            super(path);
            for (int i = 0; i < symbols.size(); i++) {
                this.symbols.put(UTF8String.fromString(symbols.get(i)), i);
            }
            this.conversion = conversion;
        }

        @Override
        void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
            Integer index = symbols.get(text(from, i, conversion, out));
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

    /** The nodes that write records, arrays, maps and unions of Avro. */
    static final class EncodeContainers {
        private EncodeContainers() {}

        /** A record. */
        public static final class Struct extends EncodeNode {
            private final int size;
            private final EncodeNode[] fields;
            private final int[] places;

            /**
             * @param size how many fields the column has
             * @param places the place in the column of each field of the schema, -1 for none
             */
            public Struct(String path, int size, EncodeNode[] fields, int[] places) {
                super(path);
                this.size = size;
                this.fields = fields;
                this.places = places;
            }

            @Override
            void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
                InternalRow row = from.getStruct(i, size);
                for (int field = 0; field < fields.length; field++) {
                    if (places[field] < 0) {
                        fields[field].writeNull(out);
                    } else {
                        fields[field].write(row, places[field], out);
                    }
                }
            }
        }

        public static final class Items extends EncodeNode {
            private final EncodeNode item;

            public Items(String path, EncodeNode item) {
                super(path);
                this.item = item;
            }

            @Override
            void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
                ArrayData items = from.getArray(i);
                int count = items.numElements();
                if (count > 0) {
                    out.putLong(count);
                    for (int place = 0; place < count; place++) {
                        item.write(items, place, out);
                    }
                }
                out.putByte(0);
            }
        }

        public static final class Entries extends EncodeNode {
            private final EncodeNode key;
            private final EncodeNode value;

            public Entries(String path, EncodeNode key, EncodeNode value) {
                super(path);
                this.key = key;
                this.value = value;
            }

            @Override
            void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
                MapData entries = from.getMap(i);
                int count = entries.numElements();
                if (count > 0) {
                    ArrayData keys = entries.keyArray();
                    ArrayData values = entries.valueArray();
                    out.putLong(count);
                    for (int place = 0; place < count; place++) {
                        key.write(keys, place, out);
                        value.write(values, place, out);
                    }
                }
                out.putByte(0);
            }
        }

        /** A union of one type, or two types of numbers, with or without null. */
        static final class Branch extends EncodeNode {
            private final EncodeNode value;
            private final int index;
            private final int nullIndex;

            /** @param nullIndex the index of null, or -1 */
            Branch(String path, EncodeNode value, int index, int nullIndex) {
                super(path);
                this.value = value;
                this.index = index;
                this.nullIndex = nullIndex;
            }

            @Override
            void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
                out.putLong(index);
                value.writeValue(from, i, out);
            }

            @Override
            void writeNull(EncodeOutput out) {
                if (nullIndex < 0) {
                    value.writeNull(out);
                } else {
                    out.putLong(nullIndex);
                }
            }
        }

        /** A union of several types: a struct of which one field is not null. */
        static final class Members extends EncodeNode {
            private final int size;
            private final EncodeNode[] members;
            private final int[] places;
            private final int[] indexes;
            private final int nullIndex;

            /**
             * @param size how many fields the column has
             * @param places the place in the column of each member, -1 for none
             * @param indexes the index in the union of each member
             * @param nullIndex the index of null, or -1
             */
            Members(String path, int size, EncodeNode[] members, int[] places, int[] indexes, int nullIndex) {
                super(path);
                this.size = size;
                this.members = members;
                this.places = places;
                this.indexes = indexes;
                this.nullIndex = nullIndex;
            }

            @Override
            void writeValue(SpecializedGetters from, int i, EncodeOutput out) {
                InternalRow row = from.getStruct(i, size);
                int found = -1;
                for (int member = 0; member < members.length; member++) {
                    if (places[member] >= 0 && !row.isNullAt(places[member])) {
                        if (found >= 0) {
                            out.refuse("expected one member of the union, got several", path);
                            members[found].write(row, places[found], out);
                        }
                        found = member;
                    }
                }
                if (found < 0) {
                    out.refuse("expected one member of the union, got none", path);
                    return;
                }
                out.putLong(indexes[found]);
                members[found].writeValue(row, places[found], out);
            }

            @Override
            void writeNull(EncodeOutput out) {
                if (nullIndex < 0) {
                    out.refuse(EncodeFailure.IS_NULL, path);
                } else {
                    out.putLong(nullIndex);
                }
            }
        }
    }
}
