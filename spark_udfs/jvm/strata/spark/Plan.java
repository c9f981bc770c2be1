package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.zip.InflaterInputStream;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.DataType;

/**
 * What the driver decided about one decode; it is sent as the name of the function.
 *
 * @param reader the reader schema's text, with encoded defaults
 * @param type the column's type as JSON
 * @param mode what a frame that cannot be decoded becomes
 * @param origin names of the columns that a FAILFAST error shows
 */
record Plan(String reader, String type, Mode mode, List<String> origin) implements Serializable {
    enum Mode { DEADLETTER, PERMISSIVE, FAILFAST }

    private static final ObjectMapper JSON = new ObjectMapper();

    static Plan parse(String encoded) {
        try {
            byte[] compressed = Base64.getUrlDecoder().decode(encoded);
            JsonNode plan = JSON.readTree(new InflaterInputStream(new ByteArrayInputStream(compressed)));
            List<String> origin = new ArrayList<>();
            plan.path("origin").forEach(name -> origin.add(name.asText()));
            return new Plan(
                plan.path("reader").asText(),
                plan.path("type").toString(),
                Mode.valueOf(plan.path("mode").asText()),
                List.copyOf(origin));
        } catch (IOException | IllegalArgumentException error) {
            throw new IllegalArgumentException("not a function of Strata: call strata.spark_udfs.decode to make columns");
        }
    }

    DataType dataType() {
        return DataType.fromJson(type);
    }

    Schema readerSchema() {
        return SchemaTexts.parse(List.of(reader));
    }
}
