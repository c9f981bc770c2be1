package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.client.RegistrySettings;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.FunctionName;

/**
 * Judges frames: each line holds the registry, the name of the function and frames, the answer their outcomes.
 *
 * <p>All frames are judged together, too, with random places: as rows of Spark's, where they are not copied, as rows of
 * objects, and as columns of a row whose order is another one. The outcomes must be the same.
 */
final class JudgeProbe {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final StructType PLACE = new StructType()
            .add("topic", DataTypes.StringType)
            .add("partition", DataTypes.IntegerType)
            .add("offset", DataTypes.LongType);
    private static final StructType COLUMNS = new StructType()
            .add("offset", DataTypes.LongType)
            .add("frame", DataTypes.BinaryType)
            .add("topic", DataTypes.StringType)
            .add("partition", DataTypes.IntegerType);
    private static final String[] TOPICS = {"orders", "orders", "orders", "a topic of several words", null};
    private static final int REPLAYED = 9;

    private JudgeProbe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(JudgeProbe::answer);
    }

    private static JsonNode answer(JsonNode task) {
        Map<String, String> options = Map.of("urls", task.get("url").asText());
        RegistrySettings settings = RegistrySettings.of(new CaseInsensitiveStringMap(options), name -> null);
        FunctionName name = FunctionName.parse(task.get("plan").asText());
        List<byte[]> frames = new ArrayList<>();
        task.get("frames").forEach(frame -> frames.add(HexFormat.of().parseHex(frame.asText())));
        requireSame(name, settings, frames);
        Replay replay = replay(name, settings, DataTypes.NullType);
        ArrayNode answers = JSON.createArrayNode();
        for (byte[] frame : frames) {
            ArrayNode answer = answers.addArray();
            Object[] record = {frame, null};
            var state = replay.update(replay.newAggregationState(), new GenericInternalRow(record));
            ArrayData outcomes = replay.produceResult(new LinkedHashMap<>(new TreeMap<>(state)));
            for (int index = 0; index < outcomes.numElements(); index++) {
                InternalRow outcome = outcomes.getStruct(index, REPLAYED);
                ArrayNode parts = answer.addArray();
                for (int part : new int[] {0, 2, 7, 8}) {
                    parts.add(outcome.isNullAt(part) ? null : outcome.getString(part));
                }
            }
        }
        return answers;
    }

    private static Replay replay(FunctionName name, RegistrySettings settings, DataType place) {
        DecodePlan plan = DecodePlan.of(name, settings);
        return new Replay("probe", plan, settings, DataTypes.BinaryType, place, name.files(settings));
    }

    private static void requireSame(FunctionName name, RegistrySettings settings, List<byte[]> frames) {
        Replay inRows = replay(name, settings, PLACE);
        Replay inObjects = replay(name, settings, PLACE);
        Replay inColumns = replay(name, settings, PLACE);
        Replay.Call call = call(inColumns);
        var ofRows = inRows.newAggregationState();
        var ofObjects = inObjects.newAggregationState();
        var ofColumns = inColumns.newAggregationState();
        StructType input = new StructType().add("frame", DataTypes.BinaryType).add("place", PLACE);
        UnsafeProjection row = UnsafeProjection.create(input);
        UnsafeProjection columns = UnsafeProjection.create(COLUMNS);
        Random chance = new Random(frames.size());
        for (byte[] frame : frames) {
            Object[] place = {
                UTF8String.fromString(TOPICS[chance.nextInt(TOPICS.length)]),
                chance.nextInt(2),
                chance.nextInt(20) == 0 ? null : chance.nextLong() >> chance.nextInt(Long.SIZE)
            };
            InternalRow record = new GenericInternalRow(new Object[] {frame, new GenericInternalRow(place)});
            ofRows = inRows.update(ofRows, row.apply(record)); // into the same bytes each time
            ofObjects = inObjects.update(ofObjects, record);
            Object[] cells = {place[2], frame, place[0], place[1]};
            ofColumns = call.update(ofColumns, columns.apply(new GenericInternalRow(cells)));
        }
        List<String> rows = words(inRows, inRows.produceResult(ofRows));
        List<String> objects = words(inObjects, inObjects.produceResult(ofObjects));
        List<String> cells = words(inColumns, inColumns.produceResult(ofColumns));
        if (!rows.equals(objects) || !rows.equals(cells)) {
            throw new AssertionError(
                    "in Spark's rows: " + rows + ", in objects: " + objects + ", in columns: " + cells);
        }
    }

    /** Return the call of a function for rows of {@link #COLUMNS}. */
    private static Replay.Call call(Replay replay) {
        List<Expression> place = new ArrayList<>();
        for (StructField part : PLACE.fields()) {
            place.add(new Literal(UTF8String.fromString(part.name()), DataTypes.StringType));
            place.add(column(part.name()));
        }
        Expression struct = Scala.make(CreateNamedStruct.class, Scala.list(place));
        return (Replay.Call) replay.call(List.of(column("frame"), struct));
    }

    private static Expression column(String name) {
        return new BoundReference(COLUMNS.fieldIndex(name), COLUMNS.apply(name).dataType(), true);
    }

    private static List<String> words(Replay replay, ArrayData outcomes) {
        StructType type = (StructType) ((ArrayType) replay.resultType()).elementType();
        List<String> words = new ArrayList<>();
        for (int index = 0; index < outcomes.numElements(); index++) {
            InternalRow outcome = outcomes.getStruct(index, REPLAYED);
            List<Object> parts = new ArrayList<>();
            for (int part = 0; part < type.size(); part++) {
                Object value = outcome.isNullAt(part) ? null : outcome.get(part, type.fields()[part].dataType());
                parts.add(
                        value instanceof InternalRow place
                                ? place.toSeq(PLACE).toString()
                                : value instanceof byte[] frame ? HexFormat.of().formatHex(frame) : value);
            }
            words.add(parts.toString());
        }
        Collections.sort(words);
        return words;
    }
}
