package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.valid.ValidExpression;
import strata.spark.valid.ValidExpression.ValidPattern;
import strata.spark.valid.ValidExpression.ValidSteps;

/**
 * Matches texts with the automata of patterns; reads and writes lines of JSON.
 *
 * <p>A line in: the pattern and the texts. A line out: whether it is found in each text; null if the pattern is unknown.
 */
final class PatternProbe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private PatternProbe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(PatternProbe::answer);
    }

    private static ArrayNode answer(JsonNode task) {
        ObjectNode table = ValidExpression.automaton(task.get("pattern").asText(), new ValidSteps.Work());
        if (table == null) {
            return null;
        }
        ValidPattern pattern = new ValidPattern(table);
        ArrayNode answer = JSON.createArrayNode();
        task.get("texts").forEach(one -> answer.add(pattern.matches(UTF8String.fromString(one.asText()))));
        return answer;
    }
}
