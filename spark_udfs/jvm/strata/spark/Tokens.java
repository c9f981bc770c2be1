package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Access tokens by OAuth 2.0 client credentials, renewed before they expire; the rules are those of serdes/oauth.py.
 *
 * <p>The secret goes to the token endpoint and nowhere else. No error contains the secret or a token, and none repeats
 * more of the endpoint's answer than an error code of RFC 6749.
 */
final class Tokens {
    private record Token(String text, long renewAt, long expiresAt) {}

    private static final double RENEWED_AT = 0.8;
    private static final long FOR_EVER = Long.MAX_VALUE / 4;
    private static final int MOST_BYTES = 64 * 1024;
    private static final Pattern TOKEN = Pattern.compile("[A-Za-z0-9\\-._~+/]+=*");
    private static final Set<String> REFUSALS = Set.of(
        "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
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
    String get(String refused) throws InterruptedException {
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
            return new Token(last.text(), later - last.expiresAt() < 0 ? later : last.expiresAt(), last.expiresAt());
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
                    throw new RegistryFailure(
                        "the token endpoint " + shown + " refused the request: " + refusal(response.statusCode(), body));
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
            + (oauth.scope() == null ? "" : "&scope=" + URLEncoder.encode(oauth.scope(), StandardCharsets.UTF_8));
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
        long nanos = (long) Math.min(seconds * 1e9, FOR_EVER);
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
