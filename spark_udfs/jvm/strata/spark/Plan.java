package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.zip.InflaterInputStream;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * What the driver decided about one decode; it is sent as the name of the function.
 *
 * @param format the format of the payloads
 * @param reader the Avro reader schema's text, with encoded defaults; else see
 *     {@link ProtoReader} and {@link JsonReader}
 * @param type the column's type as JSON
 * @param mode what a frame that cannot be decoded becomes
 * @param origin names of the columns that a FAILFAST error shows
 * @param fields the positions of the fields of the value to build, while others are only checked; null for all
 */
record Plan(
    Registry.Format format, String reader, String type, Mode mode, List<String> origin, TreeSet<Integer> fields)
    implements Serializable {

    enum Mode { DEADLETTER, PERMISSIVE, FAILFAST }

    private static final ObjectMapper JSON = new ObjectMapper();

    /** Parse the name of a function, which holds a plan. */
    static Plan parse(String function) {
        try {
            String encoded = FunctionName.parse(function).options().get("plan");
            if (encoded == null) {
                throw new IllegalArgumentException("no plan");
            }
            byte[] compressed = Base64.getUrlDecoder().decode(encoded);
            JsonNode plan = JSON.readTree(new InflaterInputStream(new ByteArrayInputStream(compressed)));
            List<String> origin = new ArrayList<>();
            plan.path("origin").forEach(name -> origin.add(name.asText()));
            return new Plan(
                Registry.Format.valueOf(plan.path("format").asText("AVRO")),
                plan.path("reader").asText(),
                plan.path("type").toString(),
                Mode.valueOf(plan.path("mode").asText()),
                List.copyOf(origin),
                null);
        } catch (IOException | IllegalArgumentException error) {
            throw new IllegalArgumentException("not a function of Strata: call strata.spark_udfs.decode to make columns");
        }
    }

    /** Return the plan that builds only some fields. */
    Plan only(Set<Integer> chosen) {
        return new Plan(format, reader, type, mode, origin, new TreeSet<>(chosen));
    }

    /** Return the names of the fields to build. */
    List<String> fieldNames() {
        return fields.stream().map(position -> ((StructType) dataType()).fields()[position].name()).toList();
    }

    DataType dataType() {
        return DataType.fromJson(type);
    }

    Schema readerSchema() {
        return Readers.read(reader);
    }
}
