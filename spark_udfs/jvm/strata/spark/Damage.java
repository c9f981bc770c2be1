package strata.spark;

/**
 * Why a payload is not a value of the reader schema. {@code reason} is short; there are few, so they can be counted.
 */
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
    static final String MALFORMED = "malformed";

    private static final int LONGEST_PATH = 100;

    final String reason;
    final String detail;
    private String path = "";

    Damage(String reason, String detail) {
        // Millions of records may be damaged, so no stack trace: it would cost more than the decode.
        super(detail.isEmpty() ? reason : reason + ": " + detail, null, false, false);
        this.reason = reason;
        this.detail = detail;
    }

    static Damage truncated() {
        return new Damage(TRUNCATED, "");
    }

    /** Prepend a part to the path of the place. */
    Damage within(String part) {
        if (path.length() < LONGEST_PATH) {
            path = part + path;
        }
        return this;
    }

    /**
     * Return the reason for dead letters, with the types for resolution: these are the same for all frames of a writer
     * schema.
     */
    String letterReason() {
        return reason.equals(RESOLUTION) ? getMessage() : reason;
    }

    private String field() {
        return path.startsWith(".") ? path.substring(1) : path;
    }

    /** Return the place in the record as the end of a message; empty at the top. */
    String place() {
        return path.isEmpty() ? "" : " (at field " + field() + ")";
    }

    /** Return the full message, with the place in the record. */
    String message(int offset) {
        String field = field();
        return getMessage() + " (" + (field.isEmpty() ? "" : "at field " + field + ", ") + "near byte " + offset + ")";
    }
}
