package strata.spark;

import java.io.Serializable;
import java.time.Duration;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Where the registry is, and the client settings: options of the catalog, and secrets, which its text never shows. */
record RegistrySettings(
    List<String> urls,
    String username,
    String password,
    String token,
    double timeoutSeconds,
    int retries,
    double backoffSeconds,
    double maxBackoffSeconds,
    double missingSeconds,
    int cacheSize,
    long maxAnswerBytes,
    String caFile,
    String certFile,
    String keyFile)
    implements Serializable {

    /** Settings of OAuth and of a proxy. This client does not support them, and would not reach the registry. */
    private static final List<String> PYTHON_ONLY = List.of(
        "proxy", "token_url", "client_id", "client_secret", "scope", "token_ca_file", "logical_cluster",
        "identity_pool");

    static RegistrySettings of(CaseInsensitiveStringMap options, UnaryOperator<String> secret) {
        String urls = options.get("urls");
        if (urls == null || urls.isBlank()) {
            throw new IllegalArgumentException("the catalog needs the option urls, the addresses of the registry");
        }
        for (String name : PYTHON_ONLY) {
            if (options.containsKey(name)) {
                throw new IllegalArgumentException(
                    "the JVM path does not support the option " + name + "; call decode with path=\"python\"");
            }
        }
        return new RegistrySettings(
            List.of(urls.split(",")),
            options.get("username"),
            secret.apply("password"),
            secret.apply("token"),
            options.getDouble("timeout", 30),
            options.getInt("retries", 4),
            options.getDouble("backoff", 0.2),
            options.getDouble("max_backoff", 10),
            options.getDouble("missing_ttl", 10),
            options.getInt("cache_size", 1000),
            options.getLong("max_answer_bytes", 64L << 20),
            options.get("ca_file"),
            options.get("cert_file"),
            options.get("key_file"));
    }

    Duration timeout() {
        return Duration.ofMillis((long) (timeoutSeconds * 1000));
    }

    @Override
    public String toString() {
        return String.join(",", urls);
    }
}
