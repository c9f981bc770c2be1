package strata.spark;

import java.util.LinkedHashSet;
import java.util.List;
import org.apache.spark.sql.types.DataType;

/**
 * The columns of a reader schema.
 *
 * @param reader the reader schema as {@link Plan} has it
 * @param type the Spark type of the decoded values
 */
record Columns(String reader, DataType type) {
    /**
     * Return the names of the chosen columns, in their order and without duplicates.
     *
     * @param owner what has the columns, for the error
     * @throws IllegalArgumentException if a name is unknown
     */
    static List<String> chosen(List<String> known, List<String> columns, String owner) {
        List<String> unknown = columns.stream().filter(one -> !known.contains(one)).toList();
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException(
                "no column " + String.join(", ", unknown) + "; " + owner + " has " + String.join(", ", known));
        }
        return List.copyOf(new LinkedHashSet<>(columns));
    }
}
