package strata.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A URI of a JSON Schema, by its parts; those that are missing are null.
 *
 * <p>References are joined as Python's {@code urljoin} does, which the serializers use.
 */
record ValidUri(String scheme, String authority, String path, String query, String fragment) {
    private static final Pattern PARTS = Pattern.compile(
        "(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\\?([^#]*))?(?:#(.*))?", Pattern.DOTALL);
    private static final Set<String> RELATIVE = Set.of("http", "https", "file", "ftp");

    static ValidUri of(String text) {
        Matcher parts = PARTS.matcher(text);
        if (!parts.matches()) {
            throw new IllegalStateException(text); // the expression matches any text
        }
        return new ValidUri(parts.group(1), parts.group(2), parts.group(3), parts.group(4), parts.group(5));
    }

    /** Return what a reference in a document means. */
    static String join(String base, String reference) {
        ValidUri from = of(base);
        ValidUri to = of(reference);
        if (reference.isEmpty()) {
            return base;
        }
        if (to.scheme != null || from.scheme == null || !RELATIVE.contains(from.scheme)) {
            return reference;
        }
        if (to.authority != null) {
            return new ValidUri(from.scheme, to.authority, to.path, to.query, to.fragment).text();
        }
        if (to.path.isEmpty()) {
            String query = to.query == null ? from.query : to.query;
            return new ValidUri(from.scheme, from.authority, from.path, query, to.fragment).text();
        }
        return new ValidUri(from.scheme, from.authority, merged(from.path, to.path), to.query, to.fragment).text();
    }

    private static String merged(String base, String path) {
        List<String> given = new ArrayList<>();
        if (!path.startsWith("/")) {
            given.addAll(Arrays.asList(base.substring(0, base.lastIndexOf('/') + 1).split("/")));
            if (given.isEmpty()) {
                given.add("");
            }
        }
        given.addAll(Arrays.asList(path.split("/", -1)));
        List<String> left = new ArrayList<>();
        for (int place = 0; place < given.size(); place++) {
            String segment = given.get(place);
            if (segment.isEmpty() && place > 0 && place < given.size() - 1) {
                throw ValidDocuments.unusable(); // Python drops it, the validator does not
            }
            if (segment.equals("..")) {
                if (!left.isEmpty()) {
                    left.remove(left.size() - 1);
                }
            } else if (!segment.equals(".")) {
                left.add(segment);
            }
        }
        String last = given.get(given.size() - 1);
        if (last.equals(".") || last.equals("..")) {
            left.add("");
        }
        String joined = String.join("/", left);
        return joined.startsWith("/") ? joined : "/" + joined;
    }

    /** Return the URI as text. */
    String text() {
        return (scheme == null ? "" : scheme + ":") + (authority == null ? "" : "//" + authority) + path
            + (query == null || query.isEmpty() ? "" : "?" + query)
            + (fragment == null || fragment.isEmpty() ? "" : "#" + fragment);
    }

    /** Return the URI without its fragment. */
    String document() {
        return new ValidUri(scheme, authority, path, query, null).text();
    }
}
