package strata.spark;

/** Why one payload is not a value of the reader schema: {@code reason} is short and fit for counting. */
final class Damage extends RuntimeException {
    private static final long serialVersionUID = 1L;

    static final String TRUNCATED = "truncated";
    static final String TRAILING_BYTES = "trailing bytes";
    static final String INVALID_UTF8 = "invalid utf-8";
    static final String NEGATIVE_LENGTH = "negative length";
    static final String INVALID_INDEX = "invalid index";
    static final String INVALID_BOOLEAN = "invalid boolean";
    static final String OUT_OF_RANGE = "out of range";
    static final String LIMIT = "limit";
    static final String RESOLUTION = "resolution";

    private static final int LONGEST_PATH = 100;

    final String reason;
    final String detail;
    private String path = "";

    Damage(String reason, String detail) {
        // Damaged records may come by the million: no stack trace, which would cost more than the decode.
        super(detail.isEmpty() ? reason : reason + ": " + detail, null, false, false);
        this.reason = reason;
        this.detail = detail;
    }

    static Damage truncated() {
        return new Damage(TRUNCATED, "");
    }

    /** The same, seen from a step further out. */
    Damage within(String part) {
        if (path.length() < LONGEST_PATH) {
            path = part + path;
        }
        return this;
    }

    /** The reason as dead letters tell it: which types do not fit is the same for all frames of a writer schema. */
    String told() {
        return reason.equals(RESOLUTION) ? getMessage() : reason;
    }

    /** The whole sentence, with the place in the record. */
    String sentence(int offset) {
        String field = path.startsWith(".") ? path.substring(1) : path;
        return getMessage() + " (" + (field.isEmpty() ? "" : "at field " + field + ", ") + "near byte " + offset + ")";
    }
}
