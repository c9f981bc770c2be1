package strata.spark.frame;

import java.util.function.Supplier;

/**
 * A reader of payloads of one writer schema into rows of one column, of the reader schema's type.
 *
 * <p>Not thread-safe. A row is valid until the next one is read.
 */
public abstract class Program {
    /** Takes the values of a record that a reader gets otherwise than they were written. */
    public interface Changes {
        /**
         * Take a change.
         *
         * @param path where the value is in the reader's record
         * @param written the value before; it gives null if it is not set
         * @param read the value after; both can only be asked for now
         */
        void changed(String path, Supplier<String> written, Supplier<String> read);

        /** Return the text of a value that is not set. */
        static String nothing() {
            return null;
        }
    }

    /** The id, the GUID or the version in Glue of the writer schema. */
    public final Object name;

    public Program(Object name) {
        this.name = name;
    }

    public final boolean isNamedBy(FrameHeader header) {
        return header.isNamed(name);
    }

    /**
     * Read a payload into the row's first field.
     *
     * @throws Refusal if the payload is damaged
     */
    public abstract void read(FrameHeader frame);
}
