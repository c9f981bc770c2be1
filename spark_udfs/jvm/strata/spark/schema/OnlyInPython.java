package strata.spark.schema;

/** A part of a schema that only Python workers support; the message names it. */
public final class OnlyInPython extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public OnlyInPython(String part) {
        super(part);
    }

    /** Return the error for a keyword by which only Python workers validate. */
    public static OnlyInPython keyword(String keyword, String how) {
        return new OnlyInPython("JSON with validation by `" + keyword + "`" + (how.isEmpty() ? "" : " ") + how);
    }
}
