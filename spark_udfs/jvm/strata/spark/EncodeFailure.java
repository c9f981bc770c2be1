package strata.spark;

/** Why a row, or a column as a whole, does not fit the schema. */
final class EncodeFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    final String detail;
    final String path;

    EncodeFailure(String detail, String path) {
        // Millions of rows may not fit, so no stack trace.
        super(path.isEmpty() ? detail : detail + " (at field " + path + ")", null, false, false);
        this.detail = detail;
        this.path = path;
    }

    /** Return the path of a part of the value at a path. */
    static String within(String path, String part) {
        return path.isEmpty() && part.startsWith(".") ? part.substring(1) : path + part;
    }
}
