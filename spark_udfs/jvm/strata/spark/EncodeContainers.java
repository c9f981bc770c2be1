package strata.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;

/** The nodes that write records, arrays, maps and unions of Avro. */
final class EncodeContainers {
    private EncodeContainers() {}

    /** A record. */
    static final class Struct extends EncodeNode {
        private final int size;
        private final EncodeNode[] fields;
        private final int[] places;

        /**
         * @param size how many fields the column has
         * @param places the place in the column of each field of the schema, -1 for none
         */
        Struct(String path, int size, EncodeNode[] fields, int[] places) {
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

    static final class Items extends EncodeNode {
        private final EncodeNode item;

        Items(String path, EncodeNode item) {
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

    static final class Entries extends EncodeNode {
        private final EncodeNode key;
        private final EncodeNode value;

        Entries(String path, EncodeNode key, EncodeNode value) {
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
                out.refuse(EncodeNode.IS_NULL, path);
            } else {
                out.putLong(nullIndex);
            }
        }
    }
}
