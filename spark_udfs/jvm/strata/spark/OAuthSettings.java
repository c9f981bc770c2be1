package strata.spark;

import java.io.Serializable;

/** Where tokens come from, and the client that they are for. */
record OAuthSettings(String url, String clientId, String clientSecret, String scope, String caFile)
    implements Serializable {

    /** Return the address alone: a record's own text would show the secret. */
    @Override
    public String toString() {
        return url;
    }
}
