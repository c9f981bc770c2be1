package strata.spark;

import java.io.IOException;
import java.io.InputStream;
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
import java.util.Base64;
import java.util.Collection;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** TLS from PEM files: certificates to trust, a client certificate and its key (PKCS 8, not encrypted). */
final class Tls {
    private Tls() {}

    /** Return a context; null means the system's trusted certificates, no own one, and a key in the same file. */
    static SSLContext context(String caFile, String certFile, String keyFile) {
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
                continue;
            }
        }
        throw new InvalidKeySpecException("expected a key of RSA, EC or Ed25519 in " + file);
    }
}
