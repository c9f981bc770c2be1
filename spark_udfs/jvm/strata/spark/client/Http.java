package strata.spark.client;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.CertPathBuilderException;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateFactory;
import java.security.cert.CertificateNotYetValidException;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.Base64;
import java.util.Collection;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import strata.spark.client.RegistrySettings.OAuthSettings;

/**
 * The HTTP client: one GET in, one JSON value out.
 *
 * <p>It tries the URLs in turn, with increasing pauses, until a response comes that a retry would not change. It does
 * not follow redirects, so credentials go only where the user sent them.
 */
public final class Http {
    /** A response: the URL and path it came from, its status and its JSON. */
    public record Answer(String base, String path, int status, JsonNode body) {
        public int errorCode() {
            return body.path("error_code").asInt(status);
        }

        public String message() {
            String message = body.path("message").asText("");
            return (message.isEmpty() ? "the answer has no body" : message) + hint() + " (HTTP " + status
                    + ", error code " + errorCode() + ")";
        }

        /** The same text as in serdes/transport.py. */
        private String hint() {
            if (errorCode() == 401) {
                return ": are username and password, or the token, those of " + base + "?";
            }
            if (errorCode() == 403) {
                return ": GET " + path;
            }
            return errorCode() == 404 ? ": is " + base + " the address of a schema registry?" : "";
        }
    }

    static final Set<Integer> RETRIED = Set.of(408, 429, 500, 502, 503, 504);
    private static final String MEDIA_TYPES = "application/vnd.schemaregistry.v1+json, application/json; q=0.9";
    private static final ObjectMapper JSON = new ObjectMapper();

    private final RegistrySettings settings;
    private final HttpClient client;
    private final Tokens tokens;
    private volatile int preferred;
    private volatile boolean met; // whether the registry has ever answered

    public Http(RegistrySettings settings) {
        this.settings = settings;
        this.client = client(settings, settings.caFile(), settings.certFile(), settings.keyFile());
        this.tokens = settings.oauth() == null ? null : new Tokens(settings);
    }

    /** Return a client with the timeout of the settings; files that are null are not used. */
    static HttpClient client(RegistrySettings settings, String caFile, String certFile, String keyFile) {
        HttpClient.Builder builder = HttpClient.newBuilder()
                .connectTimeout(settings.timeout())
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER);
        if (caFile != null || certFile != null) {
            builder.sslContext(Tls.context(caFile, certFile, keyFile));
        }
        return builder.build();
    }

    /**
     * Retry until a response comes that is not a temporary failure.
     *
     * @throws RegistryFailure after the last attempt; or before, if no URL has ever answered and the certificate of the
     *     last one is not accepted
     */
    public Answer get(String path) {
        int count = settings.urls().size();
        String failure = "no attempt was made";
        long began = System.nanoTime();
        for (int attempt = 0; goesOn(attempt, began); attempt++) {
            String base = settings.urls().get(preferred % count);
            try {
                if (attempt > 0) {
                    Waits.again(path, failure, began);
                }
                if (attempt % count == 0) { // the other URLs are tried first, without waiting
                    settings.pause(attempt / count);
                }
                Answer answer = send(base, path);
                met = true;
                if (!RETRIED.contains(answer.status())) {
                    return answer;
                }
                failure = "the registry keeps answering: " + answer.message();
            } catch (IOException error) {
                String fault = Tls.certificateFault(error);
                failure = fault == null
                        ? silence(base, error)
                        : "the certificate of " + base + " is not accepted: " + fault;
                // Before the first answer it is a mistake of settings or operator, which waiting does not mend.
                if (fault != null && !met && attempt + 1 >= count) {
                    throw new RegistryFailure(failure);
                }
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new RegistryFailure("the task was stopped while it asked the registry");
            }
            preferred = (preferred + 1) % count;
        }
        throw new RegistryFailure(failure);
    }

    private static String silence(String base, IOException error) {
        return base + " does not answer: " + error.getClass().getSimpleName()
                + (error.getMessage() == null ? "" : ": " + error.getMessage());
    }

    /** Return whether to try again after some attempts, the first of which began at a time. */
    private boolean goesOn(int attempts, long began) {
        return attempts < Math.max(settings.retries() + 1, settings.urls().size())
                || System.nanoTime() - began < settings.waitSeconds() * 1e9;
    }

    private Answer send(String base, String path) throws IOException, InterruptedException {
        if (tokens == null) {
            return send(base, path, authorization());
        }
        String token = tokens.get(null);
        Answer answer = send(base, path, "Bearer " + token);
        return answer.status() == 401 ? send(base, path, "Bearer " + tokens.get(token)) : answer;
    }

    private Answer send(String base, String path, String authorization) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path))
                .timeout(settings.timeout())
                .header("Accept", MEDIA_TYPES);
        header(request, "Authorization", authorization);
        header(request, "target-sr-cluster", settings.logicalCluster());
        header(request, "Confluent-Identity-Pool-Id", settings.identityPool());
        HttpResponse<InputStream> response = client.send(request.build(), HttpResponse.BodyHandlers.ofInputStream());
        int status = response.statusCode();
        byte[] body = read(response.body(), settings.timeout(), settings.maxAnswerBytes());
        return new Answer(base, path, status, parse(base, status, body));
    }

    private static void header(HttpRequest.Builder request, String name, String value) {
        if (value != null) {
            request.header(name, value);
        }
    }

    /**
     * Read the body. The timeout of the request covers the headers of the response only; the body gets the same time
     * again.
     */
    public static byte[] read(InputStream body, Duration timeout, long limit) throws IOException {
        Executor later = CompletableFuture.delayedExecutor(timeout.toMillis(), TimeUnit.MILLISECONDS);
        CompletableFuture<Void> watch = CompletableFuture.runAsync(() -> close(body), later);
        try (body) {
            int most = (int) Math.min(limit, Integer.MAX_VALUE - 8);
            byte[] data = body.readNBytes(most);
            if (data.length == most && body.read() >= 0) {
                throw new RegistryFailure("an answer of more than " + most + " bytes is not read");
            }
            return data;
        } catch (IOException error) {
            throw watch.isDone() ? new HttpTimeoutException("the rest of the answer did not come") : error;
        } finally {
            watch.cancel(false);
        }
    }

    private static void close(InputStream body) {
        try {
            body.close();
        } catch (IOException closed) {
            throw new UncheckedIOException(closed);
        }
    }

    private static JsonNode parse(String base, int status, byte[] data) {
        try {
            JsonNode body = JSON.readTree(data);
            return body == null || body.isMissingNode() ? JSON.createObjectNode() : body;
        } catch (IOException notJson) {
            if (status != 200) {
                return JSON.createObjectNode().put("message", brief(data));
            }
            throw new RegistryFailure(base + " answered with something that is not JSON; is it a schema registry?");
        }
    }

    private static String brief(byte[] data) {
        return new String(data, 0, Math.min(data.length, 300), StandardCharsets.UTF_8).strip();
    }

    private String authorization() {
        if (settings.token() != null) {
            return "Bearer " + settings.token();
        }
        if (settings.username() == null) {
            return null;
        }
        return basic(settings.username() + ":" + settings.password());
    }

    static String basic(String pair) {
        return "Basic " + Base64.getEncoder().encodeToString(pair.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Access tokens by OAuth 2.0 client credentials, renewed before they expire; the rules are those of serdes/oauth.py.
     *
     * <p>The secret goes to the token endpoint and nowhere else. No error contains the secret or a token, and none repeats
     * more of the endpoint's answer than an error code of RFC 6749.
     */
    static final class Tokens {
        private record Token(String text, long renewAt, long expiresAt) {}

        private static final double RENEWED_AT = 0.8;
        private static final long FOR_EVER = Long.MAX_VALUE / 4;
        private static final int MOST_BYTES = 64 * 1024;
        private static final Pattern TOKEN = Pattern.compile("[A-Za-z0-9\\-._~+/]+=*");
        private static final Set<String> REFUSALS = Set.of(
                "invalid_request",
                "invalid_client",
                "invalid_grant",
                "unauthorized_client",
                "unsupported_grant_type",
                "invalid_scope");
        private static final ObjectMapper JSON = new ObjectMapper();

        private final RegistrySettings settings;
        private final OAuthSettings oauth;
        private final HttpClient client;
        private final String shown;
        private Token last;
        private RegistryFailure failure;
        private long failedAt;

        Tokens(RegistrySettings settings) {
            this.settings = settings;
            this.oauth = settings.oauth();
            this.client = Http.client(settings, oauth.caFile(), null, null);
            URI uri = URI.create(oauth.url());
            this.shown = uri.getScheme() + "://" + uri.getAuthority() + uri.getPath();
        }

        /**
         * Return a valid token; one thread fetches it for all.
         *
         * @param refused a token that the registry rejected; null if there is none
         * @throws RegistryFailure if the endpoint rejects the request or does not answer
         */
        public String get(String refused) throws InterruptedException {
            long asked = System.nanoTime();
            synchronized (this) {
                long now = System.nanoTime();
                boolean usable = last != null && !last.text().equals(refused);
                if (usable && now - last.renewAt() < 0) {
                    return last.text();
                }
                if (failure != null && failedAt - asked > 0) {
                    throw failure; // of the thread for which this one has waited
                }
                last = renewed(usable && now - last.expiresAt() < 0, now);
                return last.text();
            }
        }

        private Token renewed(boolean inForce, long now) throws InterruptedException {
            try {
                Token token = fetch(inForce ? 1 : settings.retries() + 1);
                failure = null;
                return token;
            } catch (RegistryFailure error) {
                if (!inForce) {
                    failure = error;
                    failedAt = System.nanoTime();
                    throw error;
                }
                long later = now + (long) (settings.maxBackoffSeconds() * 1e9);
                return new Token(
                        last.text(), later - last.expiresAt() < 0 ? later : last.expiresAt(), last.expiresAt());
            }
        }

        private Token fetch(int attempts) throws InterruptedException {
            String trouble = "";
            for (int attempt = 0; attempt < attempts; attempt++) {
                settings.pause(attempt);
                long asked = System.nanoTime();
                try {
                    HttpResponse<InputStream> response =
                            client.send(request(), HttpResponse.BodyHandlers.ofInputStream());
                    byte[] body = Http.read(response.body(), settings.timeout(), MOST_BYTES);
                    if (response.statusCode() == 200) {
                        return read(body, asked);
                    }
                    if (!Http.RETRIED.contains(response.statusCode())) {
                        throw new RegistryFailure("the token endpoint " + shown + " refused the request: "
                                + refusal(response.statusCode(), body));
                    }
                    trouble = "answered HTTP " + response.statusCode() + " to every attempt";
                } catch (IOException error) {
                    String fault = Tls.certificateFault(error);
                    if (fault != null) {
                        throw new RegistryFailure(
                                "the certificate of the token endpoint " + shown + " is not accepted: " + fault);
                    }
                    trouble = "does not answer: " + error.getClass().getSimpleName();
                }
            }
            throw new RegistryFailure("the token endpoint " + shown + " " + trouble);
        }

        private HttpRequest request() {
            String pair = oauth.clientId() + ":" + oauth.clientSecret();
            String form = "grant_type=client_credentials"
                    + (oauth.scope() == null
                            ? ""
                            : "&scope=" + URLEncoder.encode(oauth.scope(), StandardCharsets.UTF_8));
            return HttpRequest.newBuilder(URI.create(oauth.url()))
                    .timeout(settings.timeout())
                    .header("Accept", "application/json")
                    .header("Authorization", Http.basic(pair))
                    .header("Content-Type", "application/x-www-form-urlencoded")
                    .POST(HttpRequest.BodyPublishers.ofString(form))
                    .build();
        }

        private Token read(byte[] data, long asked) {
            JsonNode body = parse(data);
            String text = body.path("access_token").asText("");
            JsonNode life = body.path("expires_in");
            double seconds = life.isMissingNode() || life.isNull() ? FOR_EVER / 1e9 : life.asDouble(0);
            boolean isBearer = body.path("token_type").asText("Bearer").equalsIgnoreCase("bearer");
            if (!TOKEN.matcher(text).matches() || !isBearer || !(seconds > 0)) {
                throw new RegistryFailure("the token endpoint " + shown
                        + " did not return JSON with an access_token of type Bearer that is still valid");
            }
            long nanos = (long) Math.min(seconds * 1e9, (double) FOR_EVER);
            return new Token(text, asked + (long) (RENEWED_AT * nanos), asked + nanos);
        }

        private static String refusal(int status, byte[] data) {
            String code = parse(data).path("error").asText("");
            return (REFUSALS.contains(code) ? code + " " : "") + "(HTTP " + status + ")";
        }

        private static JsonNode parse(byte[] data) {
            try {
                JsonNode body = JSON.readTree(data);
                return body == null ? JSON.createObjectNode() : body;
            } catch (IOException notJson) {
                return JSON.createObjectNode();
            }
        }
    }

    /** TLS from PEM files: certificates to trust, a client certificate and its key (PKCS 8, not encrypted). */
    static final class Tls {
        private Tls() {}

        /** Return a context; null means the system's trusted certificates, no own one, and a key in the same file. */
        public static SSLContext context(String caFile, String certFile, String keyFile) {
            try {
                SSLContext context = SSLContext.getInstance("TLS");
                TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
                trust.init(caFile == null ? null : trusted(caFile));
                KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
                keys.init(certFile == null ? null : own(certFile, keyFile == null ? certFile : keyFile), new char[0]);
                context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
                return context;
            } catch (IOException | GeneralSecurityException error) {
                throw new RegistryFailure("the certificates for https cannot be used: " + error.getMessage());
            }
        }

        /**
         * Return why the certificate of the other side is not accepted, in OpenSSL's words, which the Python client uses
         * too; null if that is not the reason of an error.
         */
        static String certificateFault(Throwable error) {
            String fault = null;
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof CertificateExpiredException) {
                    return "certificate has expired";
                }
                if (cause instanceof CertificateNotYetValidException) {
                    return "certificate is not yet valid";
                }
                if (cause instanceof CertPathBuilderException) {
                    return "unable to get local issuer certificate";
                }
                if (cause instanceof CertificateException) {
                    fault = cause.getMessage();
                }
            }
            return fault;
        }

        private static KeyStore trusted(String file) throws IOException, GeneralSecurityException {
            KeyStore store = empty();
            int number = 0;
            for (Certificate certificate : certificates(file)) {
                store.setCertificateEntry("ca-" + number++, certificate);
            }
            return store;
        }

        private static KeyStore own(String certFile, String keyFile) throws IOException, GeneralSecurityException {
            KeyStore store = empty();
            Certificate[] chain = certificates(certFile).toArray(Certificate[]::new);
            store.setKeyEntry("own", key(keyFile), new char[0], chain);
            return store;
        }

        private static KeyStore empty() throws IOException, GeneralSecurityException {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            return store;
        }

        private static Collection<? extends Certificate> certificates(String file)
                throws IOException, GeneralSecurityException {
            try (InputStream pem = Files.newInputStream(Path.of(file))) {
                return CertificateFactory.getInstance("X.509").generateCertificates(pem);
            }
        }

        private static PrivateKey key(String file) throws IOException, GeneralSecurityException {
            String pem = Files.readString(Path.of(file), StandardCharsets.US_ASCII);
            String begin = "-----BEGIN PRIVATE KEY-----";
            int start = pem.indexOf(begin);
            int end = pem.indexOf("-----END PRIVATE KEY-----");
            if (start < 0 || end < start) {
                throw new InvalidKeySpecException("no PRIVATE KEY in PKCS 8 in " + file);
            }
            byte[] encoded = Base64.getMimeDecoder().decode(pem.substring(start + begin.length(), end));
            for (String algorithm : new String[] {"RSA", "EC", "Ed25519"}) {
                try {
                    return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(encoded));
                } catch (InvalidKeySpecException other) {
                    // The next one may be its algorithm.
                }
            }
            throw new InvalidKeySpecException("expected a key of RSA, EC or Ed25519 in " + file);
        }
    }

    /** The registry did not answer, or not as a registry: no record is at fault, and the task may run again. */
    public static final class RegistryFailure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        public RegistryFailure(String message) {
            super(message);
        }
    }
}
