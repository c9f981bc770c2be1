package strata.spark.write;

import org.apache.spark.sql.catalyst.InternalRow;

/** Writes frames of one format. Not thread-safe. */
public interface EncodeWriter {
    /**
     * Return the frame of a row's first field, which is not null.
     *
     * @throws EncodeFailure if the value does not fit the schema
     */
    byte[] write(InternalRow row);

    /** Why a row, or a column as a whole, does not fit the schema. */
    static final class EncodeFailure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        public static final String IS_NULL = "expected a value, got null";

        public final String detail;
        public final String path;

        public EncodeFailure(String detail, String path) {
            // Millions of rows may not fit, so no stack trace.
            super(path.isEmpty() ? detail : detail + " (at field " + path + ")", null, false, false);
            this.detail = detail;
            this.path = path;
        }

        /** Return the path of a part of the value at a path. */
        public static String within(String path, String part) {
            return path.isEmpty() && part.startsWith(".") ? part.substring(1) : path + part;
        }
    }
}
