import java.nio.charset.StandardCharsets;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Runs the SQL statements of its input, which lines with only a semicolon separate, and prints the rows of queries. */
public final class Sql {
    public static void main(String[] args) throws Exception {
        String input = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        Configuration one = new Configuration();
        one.setString("parallelism.default", "1");
        EnvironmentSettings settings = EnvironmentSettings.newInstance().withConfiguration(one).build();
        TableEnvironment tables = TableEnvironment.create(settings);
        for (String statement : input.split("\n;\n")) {
            TableResult result = tables.executeSql(statement);
            if (statement.startsWith("SELECT")) {
                try (CloseableIterator<Row> rows = result.collect()) {
                    rows.forEachRemaining(System.out::println);
                }
            } else if (result.getJobClient().isPresent()) {
                result.await();
            }
        }
    }
}
