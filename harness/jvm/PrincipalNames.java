import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Names users as Kafka does: reads lines of rules, a tab and a subject; writes `=NAME`, `none` or `invalid`. */
public final class PrincipalNames {
    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", 2);
            out.println(name(parts[0], parts[1]));
        }
        out.flush();
    }

    private static String name(String rules, String subject) {
        SslPrincipalMapper mapper;
        try {
            mapper = SslPrincipalMapper.fromRules(rules);
        } catch (IllegalArgumentException error) {
            return "invalid";
        }
        try {
            return "=" + mapper.getName(subject);
        } catch (IOException error) {
            return "none";
        }
    }
}
