package strata.spark;

/** A part of a schema that only Python workers support; the message names it. */
final class OnlyInPython extends RuntimeException {
    private static final long serialVersionUID = 1L;

    OnlyInPython(String part) {
        super(part);
    }

    /** Return the error for a keyword by which only Python workers validate. */
    static OnlyInPython keyword(String keyword, String how) {
        return new OnlyInPython("JSON with validation by `" + keyword + "`" + (how.isEmpty() ? "" : " ") + how);
    }
}
