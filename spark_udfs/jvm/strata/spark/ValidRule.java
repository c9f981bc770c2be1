package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A keyword of a JSON Schema with its value.
 *
 * @param keyword its name, as {@link ValidSchema} gives it
 * @param path where it is in the schema
 * @param detail the words of its error, or their beginning
 * @param types the types that it allows, of {@code type}
 * @param mark the value of {@code const}, as text
 */
record ValidRule(String keyword, String path, String detail, List<String> types, String mark) {
    static ValidRule of(JsonNode check) {
        List<String> types = new ArrayList<>();
        check.path("types").forEach(one -> types.add(one.asText()));
        return new ValidRule(
            check.path("check").asText(),
            check.path("rule").asText(),
            check.path("detail").asText(),
            types,
            check.path("mark").asText());
    }

    /** Note that the value at the present place is not valid, and return false. */
    boolean refuse(ValidErrors errors, String words) {
        return refuse(errors, words, "", null);
    }

    /** Note that a value is not valid, whose path has a further part, or that is the given text. */
    boolean refuse(ValidErrors errors, String words, String part, UTF8String text) {
        if (errors != null) {
            errors.add(new ValidError(this, errors.place(), errors.path() + part, words, text, List.of()));
        }
        return false;
    }

    /** Note that no branch allows a value, or too many. */
    boolean refuse(ValidErrors errors, List<List<ValidError>> branches, String got) {
        errors.add(new ValidError(this, errors.place(), errors.path(), got, null, branches));
        return false;
    }
}
