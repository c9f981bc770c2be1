package strata.spark;

import java.util.Arrays;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.avro.EncodeAvro;
import strata.spark.json.EncodeJson;
import strata.spark.plan.EncodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.proto.EncodeProto;
import strata.spark.write.EncodeOutput.EncodeFailure;
import strata.spark.write.EncodeOutput.EncodeWriter;
import strata.spark.write.EncodeSource.EncodeTypes;

/**
 * The encode function: values of a column's type to frames of one schema, which the driver has looked up or registered.
 *
 * <p>Its arguments are the value and the columns of its origin. A null value is a null frame. Generated code passes them
 * as one row, see {@link DecodeRule}.
 */
public final class Encode implements ScalarFunction<Object> {
    private static final long serialVersionUID = 1L;
    private static final StructType ERROR =
            new StructType().add("reason", DataTypes.StringType).add("path", DataTypes.StringType);
    private static final StructType LETTER =
            new StructType().add("frame", DataTypes.BinaryType).add("error", ERROR);

    /** The name of the method for generated code. Spark calls one named invoke by itself. */
    public static final String METHOD = "call";

    private final String name;
    private final EncodePlan plan;
    private final StructType input;
    private final String zone;

    private transient EncodeWriter writer;

    /**
     * @param name what plans show
     * @param input the arguments
     * @param zone the session's time zone, which Arrow's conversions from timestamps to dates use
     * @throws UnsupportedOperationException if the column does not fit the schema
     */
    Encode(String name, EncodePlan plan, StructType input, String zone) {
        this.name = name;
        this.plan = plan;
        this.input = input;
        this.zone = zone;
        try {
            writer();
        } catch (EncodeFailure failure) {
            throw new UnsupportedOperationException(failure.getMessage());
        }
    }

    private EncodeWriter writer() {
        DataType column = input.fields()[0].dataType();
        EncodeTypes types = new EncodeTypes(zone);
        byte[] prefix = plan.prefixBytes();
        return switch (plan.format()) {
            case AVRO -> new EncodeAvro(plan.schema(), prefix, column, types);
            case PROTOBUF -> new EncodeProto(plan.schema(), prefix, column, types);
            case JSON -> new EncodeJson(plan.schema(), prefix, plan.checks(), column, types);
        };
    }

    @Override
    public DataType[] inputTypes() {
        return Arrays.stream(input.fields()).map(StructField::dataType).toArray(DataType[]::new);
    }

    @Override
    public DataType resultType() {
        return plan.mode() == FunctionName.Mode.DEADLETTER ? LETTER : DataTypes.BinaryType;
    }

    @Override
    public String name() {
        return "strata_encode";
    }

    @Override
    public String canonicalName() {
        return "strata.encode." + Integer.toHexString(plan.schema().hashCode());
    }

    /** False, because Spark copies a deterministic function below every filter. */
    @Override
    public boolean isDeterministic() {
        return false;
    }

    /** Equal calls are one: Spark matches those of {@code GROUP BY} with those of {@code SELECT}. */
    @Override
    public boolean equals(Object other) {
        return other instanceof Encode encode
                && plan.equals(encode.plan)
                && input.equals(encode.input)
                && zone.equals(encode.zone);
    }

    @Override
    public int hashCode() {
        return Objects.hash(plan, input, zone);
    }

    /** Return what plans show. */
    @Override
    public String toString() {
        return "strata_encode[" + name + "]";
    }

    @Override
    public Object produceResult(InternalRow row) {
        return call(row);
    }

    /** Return the frame of a value. */
    public Object call(InternalRow row) {
        if (row.isNullAt(0)) {
            return plan.mode() == FunctionName.Mode.DEADLETTER ? letter(null, null) : null;
        }
        if (writer == null) {
            writer = writer();
        }
        try {
            byte[] frame = writer.write(row);
            return plan.mode() == FunctionName.Mode.DEADLETTER ? letter(frame, null) : frame;
        } catch (EncodeFailure failure) {
            return refused(failure, row);
        }
    }

    private Object refused(EncodeFailure failure, InternalRow row) {
        return switch (plan.mode()) {
            case PERMISSIVE -> null;
            case DEADLETTER -> letter(null, new GenericInternalRow(new Object[] {
                UTF8String.fromString(failure.detail), UTF8String.fromString(failure.path)
            }));
            case FAILFAST -> {
                String place = place(row);
                throw new IllegalArgumentException("a row cannot be encoded"
                        + (place.isEmpty() ? "" : " (" + place + ")") + ": " + failure.getMessage());
            }
        };
    }

    private static InternalRow letter(byte[] frame, InternalRow error) {
        return new GenericInternalRow(new Object[] {frame, error});
    }

    private String place(InternalRow row) {
        StringBuilder place = new StringBuilder();
        StructField[] fields = input.fields();
        for (int i = 1; i < fields.length; i++) {
            Object value = row.get(i, fields[i].dataType());
            place.append(i == 1 ? "" : ", ").append(plan.origin().get(i - 1)).append(' ');
            place.append(value == null ? "None" : value);
        }
        return place.toString();
    }
}
