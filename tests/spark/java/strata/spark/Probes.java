package strata.spark;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;

/**
 * Runs probes one after the other, so that they share a JVM: each would load Spark's classes and compile them again.
 *
 * <p>In: the name of a probe on a line, its tasks, an empty line. Out: its answers, and a line that begins with `end`,
 * followed by the failure of the probe as one line, if it has failed.
 */
final class Probes {
    private Probes() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        for (String probe = in.readLine(); probe != null; probe = in.readLine()) {
            StringBuilder tasks = new StringBuilder();
            for (String line = in.readLine(); !line.isEmpty(); line = in.readLine()) {
                tasks.append(line).append('\n');
            }
            ByteArrayOutputStream answers = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(tasks.toString().getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(answers, false, StandardCharsets.UTF_8));
            String failure = run(probe);
            System.out.flush();
            answers.writeTo(out);
            out.write(("end " + failure.replace('\n', '\r') + "\n").getBytes(StandardCharsets.UTF_8));
            out.flush();
        }
    }

    /** Returns how a probe has failed, or an empty text. */
    private static String run(String probe) throws ReflectiveOperationException {
        try {
            Class.forName(probe).getMethod("main", String[].class).invoke(null, (Object) new String[0]);
            return "";
        } catch (InvocationTargetException failed) {
            StringWriter text = new StringWriter();
            failed.getCause().printStackTrace(new PrintWriter(text));
            return text.toString();
        }
    }
}
