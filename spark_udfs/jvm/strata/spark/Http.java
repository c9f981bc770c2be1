package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/**
 * The HTTP client: one GET in, one JSON value out.
 *
 * <p>It tries the URLs in turn, with increasing pauses, until a response comes that a retry would not change. It does
 * not follow redirects, so credentials go only where the user sent them.
 */
final class Http {
    /** A response: the URL and path it came from, its status and its JSON. */
    record Answer(String base, String path, int status, JsonNode body) {
        int errorCode() {
            return body.path("error_code").asInt(status);
        }

        String message() {
            String message = body.path("message").asText("");
            return (message.isEmpty() ? "the answer has no body" : message) + hint()
                + " (HTTP " + status + ", error code " + errorCode() + ")";
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

    Http(RegistrySettings settings) {
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
    Answer get(String path) {
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
                failure = fault == null ? silence(base, error) : "the certificate of " + base + " is not accepted: " + fault;
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
    static byte[] read(InputStream body, Duration timeout, long limit) throws IOException {
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
            throw new RegistryFailure(
                base + " answered with something that is not JSON; is it a schema registry?");
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
}
