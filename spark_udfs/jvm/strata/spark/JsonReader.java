package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;

/** The types of a JSON reader schema, as the driver describes them, and the columns that read them. */
final class JsonReader {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final JsonNode root;

    /** @param text the description that {@code strata.spark_udfs.decoding.json_jvm} makes */
    JsonReader(String text) {
        try {
            this.root = JSON.readTree(text);
        } catch (IOException error) {
            throw new IllegalArgumentException("not a reader schema of Strata");
        }
    }

    /** Return the column of the whole; it serves one program. */
    JsonColumn column() {
        return column(root);
    }

    private static JsonColumn column(JsonNode node) {
        String kind = node.path("kind").asText();
        return switch (kind) {
            case "object" -> object(node.path("fields"));
            case "array" -> new JsonContainers.Array(column(node.path("item")));
            case "map" -> new JsonContainers.Entries(column(node.path("item")));
            default -> JsonScalars.of(kind);
        };
    }

    private static JsonObject object(JsonNode fields) {
        String[] names = new String[fields.size()];
        JsonColumn[] columns = new JsonColumn[fields.size()];
        for (int slot = 0; slot < names.length; slot++) {
            names[slot] = fields.get(slot).get(0).asText();
            columns[slot] = column(fields.get(slot).get(1));
        }
        return new JsonObject(names, columns);
    }
}
