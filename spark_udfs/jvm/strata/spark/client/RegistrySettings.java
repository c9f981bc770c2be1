package strata.spark.client;

import java.io.Serializable;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Where the registry is, and the client settings: options of the catalog, and secrets, which its text never shows. */
public record RegistrySettings(
        List<String> urls,
        String username,
        String password,
        String token,
        double timeoutSeconds,
        int retries,
        double waitSeconds,
        double backoffSeconds,
        double maxBackoffSeconds,
        double missingSeconds,
        int cacheSize,
        long maxAnswerBytes,
        String caFile,
        String certFile,
        String keyFile,
        OAuthSettings oauth,
        String logicalCluster,
        String identityPool)
        implements Serializable {

    /** For how long a registry is waited for, as in spark_udfs/waits.py. */
    private static final double WAIT_SECONDS = 60;

    public static RegistrySettings of(CaseInsensitiveStringMap options, UnaryOperator<String> secret) {
        String urls = options.get("urls");
        if (urls == null || urls.isBlank()) {
            throw new IllegalArgumentException("the catalog needs the option urls, the addresses of the registry");
        }
        for (String option : List.of("proxy", "glue_region")) { // requests would bypass the proxy, or not reach Glue
            if (options.containsKey(option)) {
                throw new IllegalArgumentException(
                        "the JVM path does not support the option " + option + "; call decode with path=\"python\"");
            }
        }
        return new RegistrySettings(
                List.of(urls.split(",")),
                options.get("username"),
                secret.apply("password"),
                secret.apply("token"),
                options.getDouble("timeout", 30),
                options.getInt("retries", 4),
                options.getDouble("wait", options.containsKey("retries") ? 0 : WAIT_SECONDS),
                options.getDouble("backoff", 0.2),
                options.getDouble("max_backoff", 10),
                options.getDouble("missing_ttl", 10),
                options.getInt("cache_size", 1000),
                options.getLong("max_answer_bytes", 64L << 20),
                options.get("ca_file"),
                options.get("cert_file"),
                options.get("key_file"),
                oauth(options, secret),
                options.get("logical_cluster"),
                options.get("identity_pool"));
    }

    private static OAuthSettings oauth(CaseInsensitiveStringMap options, UnaryOperator<String> secret) {
        String url = options.get("token_url");
        if (url == null) {
            return null;
        }
        String id = options.get("client_id");
        String clientSecret = secret.apply("client_secret");
        if (id == null || clientSecret == null) {
            throw new IllegalArgumentException("the option token_url needs client_id and client_secret");
        }
        return new OAuthSettings(url, id, clientSecret, options.get("scope"), options.get("token_ca_file"));
    }

    Duration timeout() {
        return Duration.ofMillis((long) (timeoutSeconds * 1000));
    }

    /** Wait before a retry: exponentially longer, with jitter. */
    void pause(int repetition) throws InterruptedException {
        if (repetition > 0) {
            double ceiling = Math.min(maxBackoffSeconds, backoffSeconds * Math.pow(2, (double) repetition - 1));
            Thread.sleep(
                    (long) (1000 * ceiling * (0.5 + ThreadLocalRandom.current().nextDouble() / 2)));
        }
    }

    @Override
    public String toString() {
        return String.join(",", urls);
    }

    /** Where tokens come from, and the client that they are for. */
    record OAuthSettings(String url, String clientId, String clientSecret, String scope, String caFile)
            implements Serializable {

        /** Return the address alone: a record's own text would show the secret. */
        @Override
        public String toString() {
            return url;
        }
    }
}
