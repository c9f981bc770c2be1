package strata.spark;

import java.time.DateTimeException;
import java.time.LocalDate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The formats of RFC 3339, and base64, as strict as in the validator of the Python path. */
final class ValidFormats {
    private static final Pattern DATE = Pattern.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})");
    private static final Pattern TIME = Pattern.compile(
        "([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\\.[0-9]++)?"
            + "(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))");
    private static final Pattern BASE64 = Pattern.compile(
        "(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?");
    private static final int DATE_LENGTH = 10;
    private static final int DAY_MINUTES = 24 * 60;

    private ValidFormats() {}

    static boolean isValid(String format, String text) {
        return switch (format) {
            case "date" -> isDate(text);
            case "time" -> isTime(text);
            default -> text.length() > DATE_LENGTH && Character.toLowerCase(text.charAt(DATE_LENGTH)) == 't'
                && isDate(text.substring(0, DATE_LENGTH)) && isTime(text.substring(DATE_LENGTH + 1));
        };
    }

    static boolean isBase64(String text) {
        return BASE64.matcher(text).matches();
    }

    private static boolean isDate(String text) {
        Matcher found = DATE.matcher(text);
        try {
            return found.matches() && LocalDate.of(number(found, 1), number(found, 2), number(found, 3)) != null;
        } catch (DateTimeException noSuchDay) {
            return false;
        }
    }

    /** Return whether a text is a time of day; a leap second is at the end of the day in UTC. */
    private static boolean isTime(String text) {
        Matcher found = TIME.matcher(text);
        if (!found.matches()) {
            return false;
        }
        int minutes = number(found, 1) * 60 + number(found, 2);
        if (found.group(4) != null) {
            int offset = number(found, 5) * 60 + number(found, 6);
            minutes += found.group(4).equals("+") ? -offset : offset;
        }
        return number(found, 3) < 60 || Math.floorMod(minutes, DAY_MINUTES) == DAY_MINUTES - 1;
    }

    private static int number(Matcher found, int group) {
        return Integer.parseInt(found.group(group));
    }
}
