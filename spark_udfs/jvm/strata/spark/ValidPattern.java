package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** A regular expression as the table of an automaton, which {@link ValidExpression} makes. */
final class ValidPattern {
    private static final int OTHER = ValidSteps.OTHER;
    private static final int CONTINUATION_END = 0xC0;

    private final int[] classes;
    private final int[][] table;
    private final boolean[] isAccepting;
    private final boolean isOpen;

    ValidPattern(JsonNode check) {
        classes = ints(check.path("classes"));
        table = new int[check.path("table").size()][];
        Arrays.setAll(table, state -> ints(check.path("table").get(state)));
        isAccepting = new boolean[table.length];
        check.path("accepting").forEach(state -> isAccepting[state.asInt()] = true);
        isOpen = check.path("open").asBoolean();
    }

    private static int[] ints(JsonNode numbers) {
        int[] made = new int[numbers.size()];
        Arrays.setAll(made, place -> numbers.get(place).asInt());
        return made;
    }

    /** Return whether the expression is found in a text. */
    boolean matches(UTF8String text) {
        int state = 0;
        Object base = text.getBaseObject(); // Spark 3.5 has no public getByte
        long start = text.getBaseOffset();
        int size = text.numBytes();
        for (int i = 0; i < size; i++) {
            if (isOpen && isAccepting[state]) {
                return true;
            }
            int one = Platform.getByte(base, start + i) & 0xFF;
            if (one < OTHER || one >= CONTINUATION_END) { // the first byte of a character
                state = table[state][classes[Math.min(one, OTHER)]];
                if (state < 0) {
                    return false;
                }
            }
        }
        return isAccepting[state];
    }
}
