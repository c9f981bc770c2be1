package strata.spark.json;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Collections;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.json.JsonColumn.JsonScalars;
import strata.spark.json.JsonContainers.JsonObject;
import strata.spark.json.JsonTree.JsonWriter;
import strata.spark.row.RowBuffer;

/**
 * The program of JSON payloads. It depends on the reader schema only; a program for each writer schema remembers the
 * order in which that writer's records have their properties.
 *
 * <p>One pass over the bytes fills the row. What it cannot do alone is done the slow way, through a tree: the reason why
 * a payload has no value, and objects with a name that comes twice.
 */
public final class JsonProgram extends Program {
    private final JsonColumn column;
    private final RowBuffer row;
    private final Cursor cursor = new Cursor();

    public JsonProgram(Object name, JsonReader reader, RowBuffer row) {
        super(name);
        this.column = reader.column();
        this.row = row;
    }

    @Override
    public void read(byte[] frame, byte[] header, int start) {
        try {
            read(frame, start);
        } catch (Damage unusual) {
            readSlowly(frame, start);
        }
    }

    private void read(byte[] payload, int start) {
        cursor.open(payload, start, false);
        row.begin();
        row.putField(0, column.read(cursor, row, 0));
        JsonSyntax.requireEnd(cursor);
    }

    private void readSlowly(byte[] frame, int start) {
        Object value = parse(frame, start);
        try {
            column.check(Collections.singletonList(value));
            read(JsonWriter.same(value), 0);
        } catch (JsonColumn.Mismatch mismatch) {
            boolean isKind = mismatch.reason.equals(JsonColumn.INVALID_VALUE);
            String what = mismatch.reason + (mismatch.detail.isEmpty() ? "" : ": " + mismatch.detail);
            String at = mismatch.path.isEmpty() ? "" : " at " + mismatch.path;
            String place = mismatch.path.isEmpty() ? "" : " (at field " + mismatch.path + ")";
            throw new Refusal(isKind ? what + at : mismatch.reason, name, what + place);
        } catch (Damage limit) {
            throw new Refusal(limit.reason, name, limit.getMessage());
        }
    }

    /** Parse the payload; the first error in the order of its bytes counts, after UTF-8. */
    private Object parse(byte[] frame, int start) {
        try {
            cursor.open(frame, start, false);
            cursor.requireText(start, frame.length - start);
            return JsonTree.ofAll(cursor);
        } catch (Damage found) {
            Damage damage = found.reason.equals(Damage.INVALID_UTF8) ? JsonSyntax.malformed() : found;
            throw new Refusal(damage.reason, name, damage.message(cursor.at - start));
        }
    }

    /** The types of a JSON reader schema, as the driver describes them, and the columns that read them. */
    public static final class JsonReader {
        private static final ObjectMapper JSON = new ObjectMapper();

        private final JsonNode root;

        /** @param text the description that {@code strata.spark_udfs.decoding.json_jvm} makes */
        public JsonReader(String text) {
            try {
                this.root = JSON.readTree(text);
            } catch (IOException error) {
                throw new IllegalArgumentException("not a reader schema of Strata");
            }
        }

        /** Return the column of the whole; it serves one program. */
        public JsonColumn column() {
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
}
