package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** The tasks of a probe on standard input, a line of JSON each, and its answers on standard output. */
final class TaskLines {
    private static final ObjectMapper JSON = new ObjectMapper();

    private TaskLines() {}

    interface Answering {
        JsonNode answer(JsonNode task) throws Exception;
    }

    static void answerEach(Answering probe) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(probe.answer(JSON.readTree(line)));
            }
        }
    }
}
