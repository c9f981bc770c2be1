package strata.spark;

import java.util.Map;
import org.apache.avro.Schema;

/**
 * A logical type that fits its underlying type; one that does not is ignored, as the specification requires.
 *
 * @param name such as {@code timestamp-millis}
 */
record Logical(String name, int precision, int scale) {
    private static final Map<String, Schema.Type> BASES = Map.ofEntries(
        Map.entry("date", Schema.Type.INT),
        Map.entry("time-millis", Schema.Type.INT),
        Map.entry("time-micros", Schema.Type.LONG),
        Map.entry("timestamp-millis", Schema.Type.LONG),
        Map.entry("timestamp-micros", Schema.Type.LONG),
        Map.entry("timestamp-nanos", Schema.Type.LONG),
        Map.entry("local-timestamp-millis", Schema.Type.LONG),
        Map.entry("local-timestamp-micros", Schema.Type.LONG),
        Map.entry("local-timestamp-nanos", Schema.Type.LONG),
        Map.entry("uuid", Schema.Type.STRING),
        Map.entry("decimal", Schema.Type.BYTES));
    private static final Map<String, Long> PER_SECOND =
        Map.of("millis", 1_000L, "micros", 1_000_000L, "nanos", 1_000_000_000L);
    private static final int UUID_SIZE = 16;

    /** Return the logical type of a schema, null if it has none. */
    static Logical of(Schema schema) {
        if (!(schema.getObjectProp("logicalType") instanceof String name)) {
            return null;
        }
        if (schema.getType() == Schema.Type.FIXED) {
            return ofFixed(schema, name);
        }
        if (BASES.get(name) != schema.getType()) {
            return null;
        }
        return name.equals("decimal") ? decimal(schema) : new Logical(name, 0, 0);
    }

    private static Logical ofFixed(Schema schema, String name) {
        if (name.equals("uuid")) {
            return schema.getFixedSize() == UUID_SIZE ? new Logical(name, 0, 0) : null;
        }
        Logical decimal = name.equals("decimal") ? decimal(schema) : null;
        double mostDigits = Math.floor(Math.log10(2) * (8.0 * schema.getFixedSize() - 1));
        return decimal != null && decimal.precision <= mostDigits ? decimal : null;
    }

    private static Logical decimal(Schema schema) {
        int precision = whole(schema.getObjectProp("precision"), -1);
        int scale = whole(schema.getObjectProp("scale"), 0);
        return precision > 0 && scale >= 0 && scale <= precision ? new Logical("decimal", precision, scale) : null;
    }

    private static int whole(Object number, int missing) {
        return number == null ? missing : number instanceof Integer whole ? whole : -1;
    }

    /**
     * Return the conversion from the writer's to the reader's time unit: a factor, or a negative divisor; 1 for
     * neither.
     */
    static long rescale(Logical writer, Logical reader) {
        if (writer == null || reader == null || !writer.kind().equals(reader.kind())) {
            return 1;
        }
        Long have = PER_SECOND.get(writer.unit());
        Long want = PER_SECOND.get(reader.unit());
        if (have == null || want == null || have.equals(want)) {
            return 1;
        }
        return want > have ? want / have : -(have / want);
    }

    private String kind() {
        return name.substring(0, Math.max(name.lastIndexOf('-'), 0));
    }

    private String unit() {
        return name.substring(name.lastIndexOf('-') + 1);
    }
}
