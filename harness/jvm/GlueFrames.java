import com.amazonaws.services.schemaregistry.serializers.GlueSchemaRegistryKafkaSerializer;
import com.amazonaws.services.schemaregistry.serializers.json.JsonDataWithSchema;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;

/**
 * Frames records by AWS's own serializer for Kafka, with given schema versions, so that it asks no service.
 *
 * <p>One JSON object a line: format, compression (NONE or ZLIB), version (a UUID), schema and value. Avro values are in
 * Avro's JSON encoding; a Protobuf schema is a descriptor in base64, with the name of the message, the value its bytes in
 * base64. One frame a line in base64.
 */
public final class GlueFrames {
    private GlueFrames() {}

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(Base64.getEncoder().encodeToString(frame(json.readTree(line))));
        }
    }

    private static byte[] frame(JsonNode task) throws Exception {
        String format = task.path("format").asText();
        Map<String, Object> settings = new HashMap<>();
        settings.put("region", "eu-west-1");
        settings.put("dataFormat", format);
        settings.put("compression", task.path("compression").asText());
        UUID version = UUID.fromString(task.path("version").asText());
        try (GlueSchemaRegistryKafkaSerializer serializer =
                new GlueSchemaRegistryKafkaSerializer(AnonymousCredentialsProvider.create(), version, settings)) {
            serializer.configure(settings, false);
            return serializer.serialize("topic", value(format, task));
        }
    }

    private static Object value(String format, JsonNode task) throws Exception {
        String schema = task.path("schema").asText();
        String value = task.path("value").asText();
        return switch (format) {
            case "AVRO" -> avro(new Schema.Parser().parse(schema), value);
            case "JSON" -> JsonDataWithSchema.builder(schema, value).build();
            default -> protobuf(
                    schema, task.path("message").asText(), Base64.getDecoder().decode(value));
        };
    }

    private static Object avro(Schema schema, String value) throws Exception {
        return new GenericDatumReader<>(schema).read(null, DecoderFactory.get().jsonDecoder(schema, value));
    }

    private static Object protobuf(String descriptor, String name, byte[] value) throws Exception {
        FileDescriptorProto proto =
                FileDescriptorProto.parseFrom(Base64.getDecoder().decode(descriptor));
        FileDescriptor file = FileDescriptor.buildFrom(proto, new FileDescriptor[0]);
        String[] path = name.split("\\.");
        Descriptor message = file.findMessageTypeByName(path[0]);
        for (int i = 1; i < path.length; i++) {
            message = message.findNestedTypeByName(path[i]);
        }
        return DynamicMessage.parseFrom(message, value);
    }
}
