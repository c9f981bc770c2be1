package strata.spark.schema;

import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.types.DataType;

/**
 * The columns of a reader schema.
 *
 * @param reader the reader schema as {@code DecodePlan} has it
 * @param type the Spark type of the decoded values
 */
public record Columns(String reader, DataType type) {
    /**
     * Return the names of the chosen columns, in their order and without duplicates.
     *
     * @param owner what has the columns, for the error
     * @throws IllegalArgumentException if a name is unknown
     */
    public static List<String> chosen(List<String> known, List<String> columns, String owner) {
        List<String> unknown =
                columns.stream().filter(one -> !known.contains(one)).toList();
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException(
                    "no column " + String.join(", ", unknown) + "; " + owner + " has " + String.join(", ", known));
        }
        return List.copyOf(new LinkedHashSet<>(columns));
    }

    /** A walk over a reader schema: the types around it, and how many types it has met, by {@code type_limits.py}. */
    public static final class Nesting {
        private static final int MAX_TYPES = 10_000;
        private static final int MAX_DEPTH = 100;

        private final String what;
        private final Set<Object> inside = new HashSet<>();
        private int left = MAX_TYPES;

        /** @param what the schema language's word for a type that can contain itself */
        public Nesting(String what) {
            this.what = what;
        }

        /**
         * Count one more type.
         *
         * @throws IllegalArgumentException if the schema has too many types
         */
        public void count(String path) {
            if (--left < 0) {
                throw unsupported(path, "it has more than " + MAX_TYPES + " types; choose `columns`");
            }
        }

        /**
         * Return the result of a walk through the parts of a type.
         *
         * @param key identifies the type
         * @param path its path in the schema, for errors
         * @param name its name with a space before it, for errors
         * @throws IllegalArgumentException if the type contains itself, or is nested too deeply
         */
        public <T> T inside(Object key, String path, String name, Supplier<T> walk) {
            if (inside.contains(key)) {
                throw unsupported(
                        path,
                        "the " + what + name + " contains itself; leave the field out by `columns`, "
                                + "or name a reader schema without it");
            }
            if (inside.size() >= MAX_DEPTH) {
                throw unsupported(
                        path,
                        "it is more than " + MAX_DEPTH + " levels deep; leave the field out by `columns`, "
                                + "or name a reader schema without it");
            }
            inside.add(key);
            T made = walk.get();
            inside.remove(key);
            return made;
        }

        private static IllegalArgumentException unsupported(String path, String why) {
            String place = path.isEmpty() ? "as a whole" : "at " + path;
            return new IllegalArgumentException("no Spark type for the reader schema " + place + ": " + why);
        }

        /** Return the path of a part. */
        public static String within(String path, String name) {
            String longer = path + "." + name;
            int start = 0;
            while (start < longer.length() && longer.charAt(start) == '.') {
                start++;
            }
            return longer.substring(start);
        }
    }
}
