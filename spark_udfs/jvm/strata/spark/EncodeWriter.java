package strata.spark;

import org.apache.spark.sql.catalyst.InternalRow;

/** Writes frames of one format. Not thread-safe. */
interface EncodeWriter {
    /**
     * Return the frame of a row's first field, which is not null.
     *
     * @throws EncodeFailure if the value does not fit the schema
     */
    byte[] write(InternalRow row);
}
