package strata.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.unsafe.types.UTF8String;

/** The names of an object in JSON: of a struct, whose nulls may be left out, or of a map. */
interface ValidMembers {
    /** Return the names that are written, in order. */
    List<UTF8String> names(SpecializedGetters from, int i);

    int count(SpecializedGetters from, int i);

    /** Return whether a name is written for every value. */
    boolean hasAlways(UTF8String name);

    /** Return whether no name that is not among some can be written. */
    boolean hasOnly(Set<UTF8String> known);

    /** Return whether a name is written. */
    boolean has(SpecializedGetters from, int i, UTF8String name);

    /** Return whether a name that is not among some is written. */
    boolean hasOther(SpecializedGetters from, int i, Set<UTF8String> known);

    /**
     * The fields of a struct.
     *
     * @param places the fields by name
     * @param isRequired whether the null of a field is written
     */
    record Fields(UTF8String[] names, Map<UTF8String, Integer> places, boolean[] isRequired) implements ValidMembers {
        private boolean isWritten(InternalRow row, int place) {
            return isRequired[place] || !row.isNullAt(place);
        }

        @Override
        public List<UTF8String> names(SpecializedGetters from, int i) {
            InternalRow row = from.getStruct(i, names.length);
            List<UTF8String> written = new ArrayList<>();
            for (int place = 0; place < names.length; place++) {
                if (isWritten(row, place)) {
                    written.add(names[place]);
                }
            }
            return written;
        }

        @Override
        public int count(SpecializedGetters from, int i) {
            return names(from, i).size();
        }

        @Override
        public boolean hasAlways(UTF8String name) {
            Integer place = places.get(name);
            return place != null && isRequired[place];
        }

        @Override
        public boolean hasOnly(Set<UTF8String> known) {
            return known.containsAll(places.keySet());
        }

        @Override
        public boolean has(SpecializedGetters from, int i, UTF8String name) {
            Integer place = places.get(name);
            return place != null && isWritten(from.getStruct(i, names.length), place);
        }

        @Override
        public boolean hasOther(SpecializedGetters from, int i, Set<UTF8String> known) {
            InternalRow row = from.getStruct(i, names.length);
            for (int place = 0; place < names.length; place++) {
                if (isWritten(row, place) && !known.contains(names[place])) {
                    return true;
                }
            }
            return false;
        }
    }

    record Keys() implements ValidMembers {
        @Override
        public List<UTF8String> names(SpecializedGetters from, int i) {
            MapData map = from.getMap(i);
            ArrayData keys = map.keyArray();
            List<UTF8String> written = new ArrayList<>();
            for (int place = 0; place < map.numElements(); place++) {
                written.add(keys.getUTF8String(place));
            }
            return written;
        }

        @Override
        public int count(SpecializedGetters from, int i) {
            return from.getMap(i).numElements();
        }

        @Override
        public boolean hasAlways(UTF8String name) {
            return false;
        }

        @Override
        public boolean hasOnly(Set<UTF8String> known) {
            return false;
        }

        @Override
        public boolean has(SpecializedGetters from, int i, UTF8String name) {
            return names(from, i).contains(name);
        }

        @Override
        public boolean hasOther(SpecializedGetters from, int i, Set<UTF8String> known) {
            return !known.containsAll(names(from, i));
        }
    }
}
