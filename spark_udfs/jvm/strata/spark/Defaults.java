package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.util.Collections;
import java.util.HexFormat;
import java.util.IdentityHashMap;
import java.util.Set;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.internal.Accessor;

/** Writes the defaults of a reader schema as Avro, as the driver in Python does (reader_schema.py). */
final class Defaults {
    private final Set<Schema> seen = Collections.newSetFromMap(new IdentityHashMap<>());

    private Defaults() {}

    /** Return the schema, whose fields now have their defaults as Avro. */
    static Schema encoded(Schema schema) {
        new Defaults().walk(schema);
        return schema;
    }

    private void walk(Schema schema) {
        if (!seen.add(schema)) {
            return;
        }
        switch (schema.getType()) {
            case ARRAY -> walk(schema.getElementType());
            case MAP -> walk(schema.getValueType());
            case UNION -> schema.getTypes().forEach(this::walk);
            case RECORD -> {
                for (Schema.Field field : schema.getFields()) {
                    encode(field);
                    walk(field.schema());
                }
            }
            default -> { }
        }
    }

    private static void encode(Schema.Field field) {
        JsonNode value = Accessor.defaultValue(field);
        if (value == null) {
            return;
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try {
            BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
            Accessor.encode(encoder, field.schema(), value);
            field.addProp(Compiler.DEFAULT, HexFormat.of().formatHex(out.toByteArray()));
        } catch (Exception notValid) { // the encoder rejects a default with many kinds of exceptions
            field.addProp(Compiler.BAD_DEFAULT, String.valueOf(notValid.getMessage()));
        }
    }
}
