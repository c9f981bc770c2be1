package strata.spark.json;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import strata.spark.schema.JsonDocuments;
import strata.spark.schema.JsonDocuments.Unresolved;
import strata.spark.valid.ValidCheck;
import strata.spark.valid.ValidCheck.ValidError;
import strata.spark.valid.ValidCheck.ValidErrors;
import strata.spark.valid.ValidCompiler;
import strata.spark.write.EncodeJsonValue;
import strata.spark.write.EncodeOutput;
import strata.spark.write.EncodeOutput.EncodeFailure;
import strata.spark.write.EncodeOutput.EncodeWriter;
import strata.spark.write.EncodeSource;
import strata.spark.write.EncodeSource.EncodeTypes;

/**
 * Writes JSON frames by the rules of {@code spark_udfs/encoding/json_payloads.py}.
 *
 * <p>Of the schema only {@code required} counts here: a null is written for a required property, others are left out.
 * Whether a row is valid is checked after it is written, by the checks of the plan.
 */
public final class EncodeJson implements EncodeWriter {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int LONGEST_CHAIN = 50;

    private final EncodeTypes types;
    private final byte[] prefix;
    private final JsonDocuments documents;
    private final EncodeJsonValue root;
    private final ValidCheck check;
    private final EncodeOutput out = new EncodeOutput();

    /**
     * @param schema the text of the JSON Schema
     * @param prefix the bytes before each payload
     * @param checks the rules by which rows are validated, see {@code ValidSchema}; empty if they are not
     * @throws EncodeFailure if JSON has no type for a part of the column
     */
    public EncodeJson(String schema, byte[] prefix, String checks, DataType column, EncodeTypes types) {
        this.types = types;
        this.prefix = prefix;
        try {
            documents = JsonDocuments.alone(JSON.readTree(schema));
        } catch (JsonProcessingException invalid) {
            throw new EncodeFailure("the schema is not JSON", "");
        }
        root = value(column, documents.root().value(), "");
        check = checks.isEmpty() ? ValidCheck.ALWAYS : ValidCompiler.compile(checks, column, root);
    }

    @Override
    public byte[] write(InternalRow row) {
        out.begin(prefix);
        root.write(row, 0, out);
        if (!check.passes(row, 0, null)) {
            ValidErrors errors = new ValidErrors();
            check.passes(row, 0, errors);
            throw ValidError.first(errors.sorted());
        }
        return out.frame();
    }

    private EncodeJsonValue value(DataType column, JsonNode given, String path) {
        JsonNode schema = followed(given);
        if (column instanceof StructType struct) {
            return struct(struct, schema, path);
        }
        if (column instanceof MapType map) {
            if (!(map.keyType() instanceof StringType)) {
                throw new EncodeFailure("expected map keys of type string, got " + types.name(map.keyType()), path);
            }
            return new EncodeJsonValue.Entries(
                    path, value(map.valueType(), schema.path("additionalProperties"), path + "{}"));
        }
        if (column instanceof ArrayType array) {
            return new EncodeJsonValue.Items(value(array.elementType(), schema.path("items"), path + "[]"));
        }
        return scalar(column, path);
    }

    private EncodeJsonValue struct(StructType struct, JsonNode schema, String path) {
        Set<String> required = new HashSet<>();
        schema.path("required").forEach(one -> required.add(one.asText()));
        List<EncodeJsonValue.Field> fields = new ArrayList<>();
        for (StructField field : struct.fields()) {
            String inner = EncodeFailure.within(path, "." + field.name());
            EncodeJsonValue value =
                    value(field.dataType(), schema.path("properties").path(field.name()), inner);
            fields.add(new EncodeJsonValue.Field(
                    EncodeJsonValue.quoted(field.name()), value, required.contains(field.name())));
        }
        return new EncodeJsonValue.Struct(fields.toArray(EncodeJsonValue.Field[]::new));
    }

    private EncodeJsonValue scalar(DataType column, String path) {
        EncodeSource.Whole whole = EncodeSource.plain(column);
        if (whole != null) {
            return (from, i, to) -> to.putDigits(whole.get(from, i, to));
        }
        EncodeSource.Real real = EncodeSource.real(column);
        if (real != null) {
            return new EncodeJsonValue.Real(path, real);
        }
        if (column instanceof DecimalType decimal) {
            return (from, i, to) -> to.putAscii(from.getDecimal(i, decimal.precision(), decimal.scale())
                    .toJavaBigDecimal()
                    .toPlainString());
        }
        if (column instanceof DateType) {
            return new EncodeJsonValue.Date(path);
        }
        if (column instanceof TimestampType || column instanceof TimestampNTZType) {
            return new EncodeJsonValue.Timestamp(path, column instanceof TimestampType);
        }
        if (column instanceof StringType) {
            return new EncodeJsonValue.Text(path);
        }
        if (column instanceof BinaryType) {
            return new EncodeJsonValue.Bytes();
        }
        if (column instanceof BooleanType) {
            return (from, i, to) -> to.putAscii(from.getBoolean(i) ? "true" : "false");
        }
        if (column instanceof NullType) {
            return (from, i, to) -> to.putAscii("null");
        }
        throw new EncodeFailure("JSON has no type for " + types.name(column), path);
    }

    // The schema

    /** Return the part of the document that has the keywords: follows local references and drops null branches. */
    private JsonNode followed(JsonNode given) {
        JsonNode schema = given;
        for (int step = 0; step < LONGEST_CHAIN; step++) {
            JsonNode branches = schema.path("oneOf").isEmpty() ? schema.path("anyOf") : schema.path("oneOf");
            if (schema.path("$ref").isTextual()) {
                schema = pointed(schema.path("$ref").asText());
            } else if (branches.isArray()) {
                List<JsonNode> others = new ArrayList<>();
                branches.forEach(one -> {
                    if (!one.path("type").asText().equals("null")) {
                        others.add(one);
                    }
                });
                if (others.size() != 1) {
                    return schema;
                }
                schema = others.get(0);
            } else {
                return schema;
            }
        }
        return MissingNode.getInstance();
    }

    private JsonNode pointed(String reference) {
        if (!reference.equals("#") && !reference.startsWith("#/")) {
            return MissingNode.getInstance();
        }
        try {
            return documents.resolve(reference, documents.root()).place().value();
        } catch (Unresolved missing) {
            return MissingNode.getInstance();
        }
    }
}
