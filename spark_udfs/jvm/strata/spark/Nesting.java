package strata.spark;

import java.util.HashSet;
import java.util.Set;
import java.util.function.Supplier;

/** A walk over a reader schema: the types around it, and how many types it has met, by {@code type_limits.py}. */
final class Nesting {
    private static final int MAX_TYPES = 10_000;
    private static final int MAX_DEPTH = 100;

    private final String what;
    private final Set<Object> inside = new HashSet<>();
    private int left = MAX_TYPES;

    /** @param what the schema language's word for a type that can contain itself */
    Nesting(String what) {
        this.what = what;
    }

    /**
     * Count one more type.
     *
     * @throws IllegalArgumentException if the schema has too many types
     */
    void count(String path) {
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
    <T> T inside(Object key, String path, String name, Supplier<T> walk) {
        if (inside.contains(key)) {
            throw unsupported(path, "the " + what + name + " contains itself; leave the field out by `columns`, "
                + "or name a reader schema without it");
        }
        if (inside.size() >= MAX_DEPTH) {
            throw unsupported(path, "it is more than " + MAX_DEPTH + " levels deep; leave the field out by `columns`, "
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
    static String within(String path, String name) {
        String longer = path + "." + name;
        int start = 0;
        while (start < longer.length() && longer.charAt(start) == '.') {
            start++;
        }
        return longer.substring(start);
    }
}
