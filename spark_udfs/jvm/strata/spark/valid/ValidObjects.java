package strata.spark.valid;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.valid.ValidCheck.ValidErrors;
import strata.spark.valid.ValidCheck.ValidRule;

/** Checks of objects and arrays. */
final class ValidObjects {
    private ValidObjects() {}

    record Size(ValidMembers members, boolean isLeast, long limit, ValidRule rule) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            int count = members.count(from, i);
            return (isLeast ? count >= limit : count <= limit) || rule.refuse(errors, rule.detail());
        }
    }

    record Required(ValidMembers members, UTF8String name, List<String> known, ValidRule rule) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            return members.has(from, i, name)
                    || errors != null
                            && rule.refuse(errors, words(from, i), PythonText.fieldPart(name.toString()), null);
        }

        private String words(SpecializedGetters from, int i) {
            for (UTF8String one : new TreeSet<>(members.names(from, i))) {
                String given = one.toString();
                if (!known.contains(given)
                        && !PythonText.didYouMean(given, List.of(name.toString()))
                                .isEmpty()) {
                    return rule.detail() + "; is it misspelled as " + PythonText.quoted(PythonText.cut(given)) + "?";
                }
            }
            return rule.detail();
        }
    }

    /** No names but the known ones. */
    record Closed(ValidMembers members, Set<UTF8String> known, List<String> shown, ValidRule rule)
            implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            if (!members.hasOther(from, i, known)) {
                return true;
            }
            if (errors == null) {
                return false;
            }
            String first = members.names(from, i).stream()
                    .filter(one -> !known.contains(one))
                    .findFirst()
                    .orElseThrow()
                    .toString();
            String words = "the schema has no such field" + PythonText.didYouMean(first, shown);
            return rule.refuse(errors, words, PythonText.fieldPart(first), null);
        }
    }

    /**
     * A property of a struct.
     *
     * @param part how paths show it
     */
    record Property(int place, UTF8String name, String part, ValidCheck check) {}

    /**
     * The properties of a struct.
     *
     * @param size how many fields it has
     */
    record Properties(Property[] properties, int size) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            InternalRow row = from.getStruct(i, size);
            boolean isValid = true;
            for (Property one : properties) {
                if (errors == null) {
                    if (!one.check.passes(row, one.place, null)) {
                        return false;
                    }
                } else {
                    errors.enter(one.name, one.part);
                    isValid &= one.check.passes(row, one.place, errors);
                    errors.leave();
                }
            }
            return isValid;
        }
    }

    /**
     * The values of a map.
     *
     * @param named the checks of the values with some names, and the part of the path
     * @param others the check of all others, whose part of the path is their key
     */
    public record Entries(Map<UTF8String, Property> named, ValidCheck others) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            MapData map = from.getMap(i);
            ArrayData keys = map.keyArray();
            ArrayData values = map.valueArray();
            boolean isValid = true;
            for (int place = 0; place < map.numElements(); place++) {
                UTF8String key = keys.getUTF8String(place);
                Property property = named.get(key);
                ValidCheck check = property == null ? others : property.check;
                if (errors == null) {
                    if (!check.passes(values, place, null)) {
                        return false;
                    }
                } else {
                    errors.enter(key, property == null ? PythonText.keyPart(key.toString()) : property.part);
                    isValid &= check.passes(values, place, errors);
                    errors.leave();
                }
            }
            return isValid;
        }
    }

    record Length(boolean isLeast, long limit, ValidRule rule) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            int count = from.getArray(i).numElements();
            return (isLeast ? count >= limit : count <= limit) || rule.refuse(errors, rule.detail());
        }
    }

    public record Items(ValidCheck item) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            ArrayData items = from.getArray(i);
            boolean isValid = true;
            for (int place = 0; place < items.numElements(); place++) {
                if (errors == null) {
                    if (!item.passes(items, place, null)) {
                        return false;
                    }
                } else {
                    errors.enter(place, "[" + place + "]");
                    isValid &= item.passes(items, place, errors);
                    errors.leave();
                }
            }
            return isValid;
        }
    }

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
        record Fields(UTF8String[] names, Map<UTF8String, Integer> places, boolean[] isRequired)
                implements ValidMembers {
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
}
