package strata.spark.valid;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.valid.ValidCheck.ValidErrors;
import strata.spark.valid.ValidCheck.ValidRule;
import strata.spark.valid.ValidExpression.ValidPattern;
import strata.spark.valid.ValidObjects.ValidMembers;
import strata.spark.valid.ValidShapes.ValidKind;
import strata.spark.write.EncodeJsonValue;
import strata.spark.write.EncodeOutput;
import strata.spark.write.EncodeOutput.EncodeFailure;

/**
 * The rules of a JSON Schema, as {@link ValidSchema} writes them, and the type of a column → checks.
 *
 * <p>A rule that the type guarantees becomes no check, and one that it contradicts becomes a check that never passes.
 */
public final class ValidCompiler {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final DataType column;
    private final ValidKind kind;
    private final EncodeJsonValue written;

    /** @param written how the column is written */
    private ValidCompiler(DataType column, EncodeJsonValue written) {
        this.column = column;
        this.kind = ValidKind.of(column);
        this.written = written;
    }

    /** Return the check of a column, which is not null. */
    public static ValidCheck compile(String rules, DataType column, EncodeJsonValue written) {
        try {
            return new ValidCompiler(column, written).all(JSON.readTree(rules));
        } catch (JsonProcessingException invalid) {
            throw new EncodeFailure("the rules of the schema are not JSON", "");
        }
    }

    private static ValidCompiler ofNull() {
        return new ValidCompiler(DataTypes.NullType, null);
    }

    /** Return the check of an item or a field, which may be null. */
    private static ValidCheck within(JsonNode checks, DataType column, EncodeJsonValue written) {
        return ValidCheck.OrNull.of(new ValidCompiler(column, written).all(checks), ofNull().all(checks));
    }

    private ValidCheck all(JsonNode checks) {
        List<ValidCheck> made = new ArrayList<>();
        checks.forEach(one -> made.add(check(one, ValidRule.of(one))));
        return ValidCheck.all(made);
    }

    private ValidCheck check(JsonNode node, ValidRule rule) {
        return switch (rule.keyword()) {
            case "never" -> new ValidCheck.Never(rule, rule.detail());
            case "not" -> not(node, rule);
            case "oneOf", "anyOf" -> branches(node, rule);
            case "type" -> type(rule);
            case "enum", "const" -> listed(node, rule);
            default -> switch (kind) {
                case INTEGER, NUMBER -> ofNumber(node, rule);
                case STRING -> ofText(node, rule);
                case ARRAY -> ofArray(node, rule);
                case OBJECT -> ofObject(node, rule);
                case NULL, BOOLEAN -> ValidCheck.ALWAYS;
            };
        };
    }

    // Any type

    private ValidCheck not(JsonNode node, ValidRule rule) {
        ValidCheck inner = all(node.path("checks"));
        return inner instanceof ValidCheck.Never ? ValidCheck.ALWAYS : new ValidCheck.Not(inner, rule);
    }

    private ValidCheck branches(JsonNode node, ValidRule rule) {
        List<ValidCheck> branches = new ArrayList<>();
        node.path("branches").forEach(one -> branches.add(all(one)));
        return ValidCheck.Branches.of(branches, rule.keyword().equals("oneOf"), rule, kind.got);
    }

    private ValidCheck type(ValidRule rule) {
        Set<String> types = new HashSet<>(rule.types());
        boolean isNumber = kind == ValidKind.INTEGER || kind == ValidKind.NUMBER;
        if (types.contains(kind.title()) || isNumber && types.contains("number")) {
            return ValidCheck.ALWAYS;
        }
        String detail = rule.detail() + kind.got;
        return kind == ValidKind.NUMBER && types.contains("integer")
                ? new ValidNumbers(column).whole(rule, detail)
                : new ValidCheck.Never(rule, detail);
    }

    private ValidCheck listed(JsonNode node, ValidRule rule) {
        JsonNode values = node.path("values");
        List<String> texts = new ArrayList<>();
        Set<Double> numbers = new HashSet<>();
        Set<Boolean> truths = new HashSet<>();
        boolean hasNull = false;
        for (JsonNode one : values) {
            if (one.isTextual()) {
                texts.add(one.asText());
            } else if (one.isNumber()) {
                numbers.add(one.asDouble() + 0.0);
            } else if (one.isBoolean()) {
                truths.add(one.asBoolean());
            }
            hasNull |= one.isNull();
        }
        ValidCheck never =
                new ValidCheck.Never(rule, rule.detail() + (rule.keyword().equals("const") ? kind.other : kind.got));
        return switch (kind) {
            case NULL -> hasNull ? ValidCheck.ALWAYS : never;
            case BOOLEAN -> (from, i, errors) -> truths.contains(from.getBoolean(i)) || never.passes(from, i, errors);
            case INTEGER, NUMBER -> new ValidNumbers(column).listed(rule, numbers, ((ValidCheck.Never) never).detail());
            case STRING -> new ValidTexts(column, written).listed(rule, texts);
            case ARRAY, OBJECT -> never;
        };
    }

    // One type

    private ValidCheck ofNumber(JsonNode node, ValidRule rule) {
        if (ValidNumbers.isLimit(rule.keyword())) {
            return new ValidNumbers(column)
                    .limited(rule, new BigDecimal(node.path("limit").asText()));
        }
        return rule.keyword().equals("multipleOf")
                ? new ValidNumbers(column).multiple(rule, limit(node))
                : ValidCheck.ALWAYS;
    }

    private ValidCheck ofText(JsonNode node, ValidRule rule) {
        ValidTexts texts = new ValidTexts(column, written);
        return switch (rule.keyword()) {
            case "minLength", "maxLength" -> texts.ofLength(rule, limit(node));
            case "format" -> texts.ofFormat(rule, node.path("name").asText());
            case "pattern" -> texts.ofPattern(rule, new ValidPattern(node));
            case "contentEncoding" -> texts.ofBase64(rule);
            default -> ValidCheck.ALWAYS;
        };
    }

    private ValidCheck ofArray(JsonNode node, ValidRule rule) {
        return switch (rule.keyword()) {
            case "minItems", "maxItems" -> new ValidObjects.Length(
                    rule.keyword().equals("minItems"), limit(node), rule);
            case "items" -> {
                EncodeJsonValue item = ((EncodeJsonValue.Items) written).item();
                ValidCheck check = within(node.path("checks"), ((ArrayType) column).elementType(), item);
                yield check == ValidCheck.ALWAYS ? check : new ValidObjects.Items(check);
            }
            default -> ValidCheck.ALWAYS;
        };
    }

    private ValidCheck ofObject(JsonNode node, ValidRule rule) {
        List<String> known = new ArrayList<>();
        node.path("known").forEach(one -> known.add(one.asText()));
        ValidMembers members = members();
        return switch (rule.keyword()) {
            case "minProperties", "maxProperties" -> new ValidObjects.Size(
                    members, rule.keyword().equals("minProperties"), limit(node), rule);
            case "empty" -> new ValidObjects.Size(members, false, 0, rule);
            case "closed" -> members.hasOnly(utf8(known))
                    ? ValidCheck.ALWAYS
                    : new ValidObjects.Closed(members, utf8(known), known, rule);
            case "required" -> {
                List<ValidCheck> made = new ArrayList<>();
                for (JsonNode one : node.path("names")) {
                    UTF8String name = UTF8String.fromString(one.asText());
                    if (!members.hasAlways(name)) {
                        made.add(new ValidObjects.Required(members, name, known, rule));
                    }
                }
                yield ValidCheck.all(made);
            }
            case "properties" -> column instanceof StructType struct
                    ? properties(node, struct)
                    : entries(node, (MapType) column);
            case "additional" -> column instanceof StructType struct
                    ? additional(node, struct, known)
                    : others(node, (MapType) column, known);
            default -> ValidCheck.ALWAYS;
        };
    }

    private static long limit(JsonNode node) {
        return Long.parseLong(node.path("limit").asText());
    }

    private static Set<UTF8String> utf8(List<String> names) {
        Set<UTF8String> made = new HashSet<>();
        names.forEach(one -> made.add(UTF8String.fromString(one)));
        return made;
    }

    // Objects

    private ValidMembers members() {
        if (!(column instanceof StructType struct)) {
            return new ValidMembers.Keys();
        }
        UTF8String[] names = new UTF8String[struct.size()];
        boolean[] isRequired = new boolean[names.length];
        Map<UTF8String, Integer> places = new HashMap<>();
        for (int place = 0; place < names.length; place++) {
            names[place] = UTF8String.fromString(struct.fields()[place].name());
            isRequired[place] = fields()[place].isRequired();
            places.put(names[place], place);
        }
        return new ValidMembers.Fields(names, places, isRequired);
    }

    private EncodeJsonValue.Field[] fields() {
        return ((EncodeJsonValue.Struct) written).fields();
    }

    private ValidCheck properties(JsonNode node, StructType struct) {
        List<ValidObjects.Property> made = new ArrayList<>();
        for (JsonNode one : node.path("properties")) {
            String name = one.path("name").asText();
            for (int place = 0; place < struct.size(); place++) {
                if (struct.fields()[place].name().equals(name)) {
                    addField(made, struct, place, one.path("part").asText(), one.path("checks"));
                }
            }
        }
        return properties(made, struct);
    }

    private ValidCheck additional(JsonNode node, StructType struct, List<String> known) {
        List<ValidObjects.Property> made = new ArrayList<>();
        for (int place = 0; place < struct.size(); place++) {
            String name = struct.fields()[place].name();
            if (!known.contains(name)) {
                addField(made, struct, place, PythonText.keyPart(name), node.path("checks"));
            }
        }
        return properties(made, struct);
    }

    private static ValidCheck properties(List<ValidObjects.Property> made, StructType struct) {
        return made.isEmpty()
                ? ValidCheck.ALWAYS
                : new ValidObjects.Properties(made.toArray(ValidObjects.Property[]::new), struct.size());
    }

    private void addField(List<ValidObjects.Property> to, StructType struct, int place, String part, JsonNode checks) {
        EncodeJsonValue.Field field = fields()[place];
        ValidCheck value = new ValidCompiler(struct.fields()[place].dataType(), field.value()).all(checks);
        // A null that is not required is left out.
        ValidCheck ofNull = field.isRequired() ? ofNull().all(checks) : ValidCheck.ALWAYS;
        ValidCheck check = ValidCheck.OrNull.of(value, ofNull);
        if (check != ValidCheck.ALWAYS) {
            UTF8String name = UTF8String.fromString(struct.fields()[place].name());
            to.add(new ValidObjects.Property(place, name, part, check));
        }
    }

    private ValidCheck entries(JsonNode node, MapType map) {
        Map<UTF8String, ValidObjects.Property> named = new HashMap<>();
        boolean isSure = true;
        for (JsonNode one : node.path("properties")) {
            ValidCheck check = within(one.path("checks"), map.valueType(), value());
            UTF8String name = UTF8String.fromString(one.path("name").asText());
            named.put(name, new ValidObjects.Property(0, name, one.path("part").asText(), check));
            isSure &= check == ValidCheck.ALWAYS;
        }
        return isSure ? ValidCheck.ALWAYS : new ValidObjects.Entries(named, ValidCheck.ALWAYS);
    }

    private ValidCheck others(JsonNode node, MapType map, List<String> known) {
        ValidCheck check = within(node.path("checks"), map.valueType(), value());
        Map<UTF8String, ValidObjects.Property> named = new HashMap<>();
        for (UTF8String name : utf8(known)) {
            named.put(name, new ValidObjects.Property(0, name, "", ValidCheck.ALWAYS));
        }
        return check == ValidCheck.ALWAYS ? check : new ValidObjects.Entries(named, check);
    }

    private EncodeJsonValue value() {
        return ((EncodeJsonValue.Entries) written).value();
    }

    /** Checks of columns that are texts in JSON. */
    static final class ValidTexts {
        private interface Source {
            UTF8String get(SpecializedGetters from, int i);
        }

        private record Check(Source source, Predicate<UTF8String> test, ValidRule rule) implements ValidCheck {
            @Override
            public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
                return test.test(source.get(from, i)) || rule.refuse(errors, rule.detail());
            }
        }

        private record Listed(Source source, Set<UTF8String> texts, List<String> known, ValidRule rule)
                implements ValidCheck {
            @Override
            public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
                UTF8String text = source.get(from, i);
                return texts.contains(text) || errors != null && rule.refuse(errors, words(text), "", text);
            }

            private String words(UTF8String text) {
                boolean isEnum = rule.keyword().equals("enum");
                String got = isEnum && known.isEmpty() ? ValidKind.STRING.got : ValidKind.STRING.other;
                return rule.detail() + got + (isEnum ? PythonText.didYouMean(text.toString(), known) : "");
            }
        }

        private final DataType column;
        private final Source source;

        /** @param written the text of the column, in quotes */
        ValidTexts(DataType column, EncodeJsonValue written) {
            this.column = column;
            EncodeOutput scratch = new EncodeOutput();
            source = column instanceof StringType
                    ? SpecializedGetters::getUTF8String
                    : (from, i) -> {
                        scratch.begin(new byte[0]);
                        written.write(from, i, scratch);
                        byte[] quoted = scratch.frame();
                        return UTF8String.fromBytes(quoted, 1, quoted.length - 2);
                    };
        }

        ValidCheck ofLength(ValidRule rule, long limit) {
            boolean isLeast = rule.keyword().equals("minLength");
            return new Check(source, text -> isLeast ? text.numChars() >= limit : text.numChars() <= limit, rule);
        }

        ValidCheck listed(ValidRule rule, List<String> known) {
            Set<UTF8String> texts = new HashSet<>();
            known.forEach(one -> texts.add(UTF8String.fromString(one)));
            return new Listed(source, texts, known, rule);
        }

        ValidCheck ofFormat(ValidRule rule, String format) {
            boolean isSure = column instanceof DateType && format.equals("date")
                    || column instanceof TimestampType && format.equals("date-time");
            return isSure
                    ? ValidCheck.ALWAYS
                    : new Check(source, text -> ValidFormats.isValid(format, ascii(text)), rule);
        }

        ValidCheck ofPattern(ValidRule rule, ValidPattern pattern) {
            return new Check(source, pattern::matches, rule);
        }

        ValidCheck ofBase64(ValidRule rule) {
            return column instanceof BinaryType
                    ? ValidCheck.ALWAYS
                    : new Check(source, text -> ValidFormats.isBase64(ascii(text)), rule);
        }

        /** Return a text in which bytes beyond ASCII are characters that no format has. */
        private static String ascii(UTF8String text) {
            return new String(text.getBytes(), StandardCharsets.ISO_8859_1);
        }

        /** The formats of RFC 3339, and base64, as strict as in the validator of the Python path. */
        static final class ValidFormats {
            private static final Pattern DATE = Pattern.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})");
            private static final Pattern TIME =
                    Pattern.compile("([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\\.[0-9]++)?"
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
                    default -> text.length() > DATE_LENGTH
                            && Character.toLowerCase(text.charAt(DATE_LENGTH)) == 't'
                            && isDate(text.substring(0, DATE_LENGTH))
                            && isTime(text.substring(DATE_LENGTH + 1));
                };
            }

            static boolean isBase64(String text) {
                return BASE64.matcher(text).matches();
            }

            private static boolean isDate(String text) {
                Matcher found = DATE.matcher(text);
                try {
                    return found.matches()
                            && LocalDate.of(number(found, 1), number(found, 2), number(found, 3)) != null;
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
    }
}
