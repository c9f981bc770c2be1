package strata.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** URIs in JSON Schemas, joined as Python's {@code urllib.parse} joins them, with which the registry reads schemas. */
final class JsonUris {
    /** The schemes whose URIs can be relative. */
    private static final Set<String> RELATIVE = Set.of(
        "", "ftp", "http", "gopher", "nntp", "imap", "wais", "file", "https", "shttp", "mms", "prospero", "rtsp",
        "rtsps", "rtspu", "sftp", "svn", "svn+ssh", "ws", "wss");
    private static final Pattern PARTS = Pattern.compile(
        "(?:([A-Za-z][A-Za-z0-9+.\\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\\?([^#]*))?(?:#(.*))?", Pattern.DOTALL);

    private record Parts(String scheme, String authority, String path, String query, String fragment) {
        static Parts of(String uri, String scheme) {
            Matcher parts = PARTS.matcher(uri);
            if (!parts.matches()) {
                throw new IllegalStateException(uri); // the expression matches any text
            }
            String own = parts.group(1) == null ? scheme : parts.group(1).toLowerCase(Locale.ROOT);
            return new Parts(own, or(parts.group(2)), parts.group(3), or(parts.group(4)), or(parts.group(5)));
        }

        private static String or(String part) {
            return part == null ? "" : part;
        }

        String text() {
            boolean hasAuthority = !authority.isEmpty()
                || !scheme.isEmpty() && RELATIVE.contains(scheme) && !path.startsWith("//");
            String slash = hasAuthority && !path.isEmpty() && !path.startsWith("/") ? "/" : "";
            return (scheme.isEmpty() ? "" : scheme + ":") + (hasAuthority ? "//" + authority : "") + slash + path
                + (query.isEmpty() ? "" : "?" + query) + (fragment.isEmpty() ? "" : "#" + fragment);
        }
    }

    private JsonUris() {}

    /** Return what a URI means in a document with a base URI; both may be empty. */
    static String join(String base, String uri) {
        if (base.isEmpty() || uri.isEmpty()) {
            return base + uri;
        }
        Parts from = Parts.of(base, "");
        Parts to = Parts.of(uri, from.scheme);
        if (!to.scheme.equals(from.scheme) || !RELATIVE.contains(to.scheme)) {
            return uri;
        }
        if (!to.authority.isEmpty()) {
            return to.text();
        }
        boolean isSame = to.path.isEmpty();
        String query = isSame && to.query.isEmpty() ? from.query : to.query;
        return new Parts(to.scheme, from.authority, isSame ? from.path : merged(from.path, to.path), query, to.fragment)
            .text();
    }

    private static String merged(String base, String path) {
        List<String> segments = new ArrayList<>();
        if (!path.startsWith("/")) {
            segments.addAll(Arrays.asList(base.split("/", -1)));
            if (!segments.get(segments.size() - 1).isEmpty()) {
                segments.remove(segments.size() - 1);
            }
        }
        boolean isMerged = !path.startsWith("/");
        segments.addAll(Arrays.asList(path.split("/", -1)));
        List<String> left = new ArrayList<>();
        int last = segments.size() - 1;
        for (int place = 0; place <= last; place++) {
            String one = segments.get(place);
            if (one.equals("..")) {
                if (!left.isEmpty()) {
                    left.remove(left.size() - 1);
                }
            } else if (!one.equals(".") && !(isMerged && one.isEmpty() && place > 0 && place < last)) {
                left.add(one);
            }
        }
        if (segments.get(last).equals(".") || segments.get(last).equals("..")) {
            left.add("");
        }
        String joined = String.join("/", left);
        return joined.isEmpty() ? "/" : joined;
    }

    /** Return a URI without its fragment. */
    static String document(String uri) {
        if (uri.indexOf('#') < 0) {
            return uri;
        }
        Parts parts = Parts.of(uri, "");
        return new Parts(parts.scheme, parts.authority, parts.path, parts.query, "").text();
    }

    /** Return the fragment of a URI; empty without one. */
    static String fragment(String uri) {
        return Parts.of(uri, "").fragment;
    }
}
