package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.zip.InflaterInputStream;

/**
 * What the driver decided about one encode; it is sent as the name of the function.
 *
 * @param format the format of the payloads
 * @param schema the writer schema: Avro's text, with its references written out; for Protobuf, see
 * {@link EncodeProto}; for JSON, see {@link EncodeJson}
 * @param prefix the bytes before each payload, in hexadecimal digits
 * @param mode what a row that cannot be encoded becomes
 * @param origin names of the columns that a FAILFAST error shows
 * @param checks the rules by which rows of JSON are validated, see {@link ValidSchema}; empty if they are not
 */
record EncodePlan(
    Format format, String schema, String prefix, Plan.Mode mode, List<String> origin, String checks)
    implements Serializable {
    enum Format { AVRO, PROTOBUF, JSON }

    /** The namespace of the functions that encode. */
    static final String NAMESPACE = "encode";

    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * Parse the name of a function, which holds a plan.
     *
     * @throws OnlyInPython if only Python workers can validate with its schema
     */
    static EncodePlan parse(FunctionName name) {
        try {
            byte[] compressed = Base64.getUrlDecoder().decode(name.options().get("plan"));
            JsonNode plan = JSON.readTree(new InflaterInputStream(new ByteArrayInputStream(compressed)));
            ValidDocuments.Source schema = ValidDocuments.Source.of(plan);
            Map<String, ValidDocuments.Source> named = new HashMap<>();
            plan.path("named").fields().forEachRemaining(one -> named.put(one.getKey(), ValidDocuments.Source.of(one.getValue())));
            return new EncodePlan(
                Format.valueOf(plan.path("format").asText()),
                schema.text(),
                plan.path("prefix").asText(),
                Plan.Mode.valueOf(plan.path("mode").asText()),
                texts(plan.path("origin")),
                plan.path("validate").asBoolean() ? ValidSchema.rules(schema, named) : "");
        } catch (IOException | IllegalArgumentException error) {
            throw new IllegalArgumentException("not a function of Strata: call strata.spark_udfs.encode to make columns");
        }
    }

    private static List<String> texts(JsonNode written) {
        List<String> texts = new ArrayList<>();
        written.forEach(one -> texts.add(one.asText()));
        return List.copyOf(texts);
    }

    byte[] prefixBytes() {
        return HexFormat.of().parseHex(prefix);
    }
}
