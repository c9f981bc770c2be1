package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import strata.spark.client.RegistrySettings;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.FunctionName;

/** Judges frames: each line holds the registry, the name of the function and frames, the answer their outcomes. */
final class JudgeProbe {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int PARTS = 9;

    private JudgeProbe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(JudgeProbe::answer);
    }

    private static JsonNode answer(JsonNode task) {
        Map<String, String> options = Map.of("urls", task.get("url").asText());
        RegistrySettings settings = RegistrySettings.of(new CaseInsensitiveStringMap(options), name -> null);
        FunctionName name = FunctionName.parse(task.get("plan").asText());
        Replay replay = new Replay(
                "probe",
                DecodePlan.of(name, settings),
                settings,
                DataTypes.BinaryType,
                DataTypes.NullType,
                name.files(settings));
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode frame : task.get("frames")) {
            ArrayNode answer = answers.addArray();
            Object[] record = {HexFormat.of().parseHex(frame.asText()), null};
            var state = replay.update(replay.newAggregationState(), new GenericInternalRow(record));
            ArrayData outcomes = replay.produceResult(new LinkedHashMap<>(new TreeMap<>(state)));
            for (int index = 0; index < outcomes.numElements(); index++) {
                InternalRow outcome = outcomes.getStruct(index, PARTS);
                ArrayNode parts = answer.addArray();
                for (int part : new int[] {0, 2, 7, 8}) {
                    parts.add(outcome.isNullAt(part) ? null : outcome.getString(part));
                }
            }
        }
        return answers;
    }
}
