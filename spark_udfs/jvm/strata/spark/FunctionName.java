package strata.spark;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The name of a function, which says what it reads: {@code orders-value?version=3&mode=PERMISSIVE}.
 *
 * <p>Values are percent-encoded where they hold {@code ?}, {@code &}, {@code =}, {@code %} or {@code +}.
 *
 * @param subject the subject; empty if an option names the schema
 * @param options what follows the question mark, by name
 */
record FunctionName(String subject, Map<String, String> options) {
    static FunctionName parse(String text) {
        int mark = text.indexOf('?');
        Map<String, String> options = new LinkedHashMap<>();
        if (mark >= 0) {
            for (String option : text.substring(mark + 1).split("&")) {
                int equals = option.indexOf('=');
                if (equals < 0) {
                    throw new IllegalArgumentException("expected NAME=VALUE after the question mark of " + text);
                }
                options.put(option.substring(0, equals), decoded(option.substring(equals + 1)));
            }
        }
        return new FunctionName(decoded(mark < 0 ? text : text.substring(0, mark)), options);
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
    }

    /** Return the name without the plan, for people. */
    static String shown(String text) {
        int plan = text.indexOf("plan=");
        String shown = plan < 0 ? text : text.substring(0, plan - 1);
        return shown.isEmpty() ? "schema text" : shown;
    }
}
