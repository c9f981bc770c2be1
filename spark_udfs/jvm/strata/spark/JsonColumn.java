package strata.spark;

import java.util.List;
import java.util.Map;

/** A type of the reader schema: reads its values from JSON, and says why other values do not fit. */
abstract class JsonColumn extends Node {
    /** Why a value does not fit, and the path of its column. */
    static final class Misfit extends RuntimeException {
        private static final long serialVersionUID = 1L;

        final String reason;
        final String detail;
        String path = "";

        Misfit(String reason, String detail) {
            super(detail, null, false, false);
            this.reason = reason;
            this.detail = detail;
        }
    }

    static final String INVALID_VALUE = "invalid value";

    /** Something that this class leaves to the slow way, such as a name that comes twice, or a value that does not fit. */
    static final Damage UNUSUAL = new Damage(Damage.MALFORMED, "");

    /**
     * Check values, all of which are in this column, in the order of the Python path: column by column.
     *
     * @param values as of {@link JsonTree}
     * @throws Misfit for the first that does not fit
     */
    abstract void check(List<Object> values);

    /** Return the width in bytes of an item of an array. */
    int width() {
        return 8;
    }

    /** Return whether the word of a slot is the place of a value elsewhere. */
    boolean isNested() {
        return true;
    }

    /** Check the values of an inner column. */
    static void checkUnder(String step, JsonColumn column, List<Object> values) {
        try {
            column.check(values);
        } catch (Misfit misfit) {
            boolean isPlain = !misfit.path.isEmpty() && "[{".indexOf(misfit.path.charAt(0)) < 0;
            misfit.path = step + (isPlain ? "." : "") + misfit.path;
            throw misfit;
        }
    }

    /** Check that values are null or of a kind. */
    static void require(List<Object> values, String expected, Class<?> kind) {
        for (Object value : values) {
            if (value != null && !kind.isInstance(value)) {
                throw unexpected(expected, value);
            }
        }
    }

    static Misfit unexpected(String expected, Object value) {
        return new Misfit(INVALID_VALUE, "expected " + expected + ", got " + kind(value));
    }

    private static String kind(Object value) {
        return value instanceof JsonTree.Number number ? number.isFloat() ? "number" : "integer"
            : value instanceof String ? "string"
            : value instanceof Boolean ? "boolean"
            : value instanceof Map ? "object"
            : "array";
    }

    /** Pass {@code null}; any other value does not fit. */
    static long nothing(Cursor in, RowBuffer out) {
        if (in.bytes[in.at] != 'n') {
            throw UNUSUAL;
        }
        JsonSyntax.literal(in, "null");
        return out.nothing();
    }
}
