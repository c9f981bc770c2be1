import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.datatype.jsonorg.JsonOrgModule;
import com.github.erosb.jsonsKema.CompositeSchema;
import com.github.erosb.jsonsKema.DependentSchemasSchema;
import com.github.erosb.jsonsKema.IJsonValue;
import com.github.erosb.jsonsKema.MemoizingSchemaClient;
import com.github.erosb.jsonsKema.MultiTypeSchema;
import com.github.erosb.jsonsKema.PrepopulatedSchemaClient;
import com.github.erosb.jsonsKema.SchemaClient;
import com.github.erosb.jsonsKema.SchemaLoaderConfig;
import com.github.erosb.jsonsKema.SchemaLoaderKt;
import com.github.erosb.jsonsKema.SchemaVisitor;
import com.github.erosb.jsonsKema.TypeSchema;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.everit.json.schema.ArraySchema;
import org.everit.json.schema.BooleanSchema;
import org.everit.json.schema.CombinedSchema;
import org.everit.json.schema.ConditionalSchema;
import org.everit.json.schema.ConstSchema;
import org.everit.json.schema.EmptySchema;
import org.everit.json.schema.EnumSchema;
import org.everit.json.schema.FalseSchema;
import org.everit.json.schema.NotSchema;
import org.everit.json.schema.NullSchema;
import org.everit.json.schema.NumberSchema;
import org.everit.json.schema.ObjectSchema;
import org.everit.json.schema.ReferenceSchema;
import org.everit.json.schema.Schema;
import org.everit.json.schema.StringSchema;
import org.everit.json.schema.loader.SchemaLoader;
import org.everit.json.schema.loader.internal.ReferenceResolver;
import org.json.JSONObject;

/** Tells whether two public loaders accept a JSON Schema, and which model the older one makes; a question per line. */
final class JsonLoaders {
    private static final ObjectMapper JSON = JsonMapper.builder()
            .addModule(new JsonOrgModule())
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .nodeFactory(JsonNodeFactory.withExactBigDecimals(true))
            .build();

    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                if (question.has("pattern")) {
                    Pattern.compile(question.get("pattern").asText());
                } else {
                    load(question, answer);
                }
                answer.put("accepted", true);
            } catch (Exception | Error refusal) {
                answer.put("accepted", false);
            }
            answers.println(JSON.writeValueAsString(answer));
        }
        answers.flush();
    }

    private static void load(JsonNode question, ObjectNode answer) throws Exception {
        JsonNode schema = JSON.readTree(question.get("schema").asText());
        String dialect = schema.path("$schema").asText();
        if (dialect.startsWith("https://json-schema.org/draft/20")) {
            loadNewer(schema, question.path("references"), dialect);
        } else {
            answer.put("model", new Description().of(loadOlder(schema, question.path("references"))));
        }
    }

    private static Schema loadOlder(JsonNode schema, JsonNode references) throws Exception {
        boolean fourth = schema.path("$schema").asText().contains("draft-04");
        URI base = nameOf(schema, fourth ? "id" : "$id");
        SchemaLoader.SchemaLoaderBuilder builder =
                SchemaLoader.builder().useDefaults(true).draftV7Support();
        builder.schemaClient(uri -> {
            throw new UncheckedIOException(new IOException(uri));
        });
        for (Map.Entry<String, JsonNode> reference : references.properties()) {
            URI name = ReferenceResolver.resolve(base, reference.getKey());
            builder.registerSchemaByURI(
                    name, new JSONObject(reference.getValue().asText()));
        }
        return builder.schemaJson(JSON.treeToValue(schema, JSONObject.class))
                .build()
                .load()
                .build();
    }

    private static void loadNewer(JsonNode schema, JsonNode references, String dialect) throws Exception {
        URI base = nameOf(schema, "$id");
        Map<URI, String> documents = new HashMap<>();
        if (dialect.contains("2019-09")) {
            documents.put(new URI(dialect), "{}");
        }
        for (Map.Entry<String, JsonNode> reference : references.properties()) {
            documents.put(
                    ReferenceResolver.resolve(base, reference.getKey()),
                    reference.getValue().asText());
        }
        SchemaClient client = new MemoizingSchemaClient(new PrepopulatedSchemaClient(new NoClient(), documents));
        URI initial = base == null ? SchemaLoaderKt.getDEFAULT_BASE_URI() : base;
        SchemaLoaderConfig config = new SchemaLoaderConfig(client, initial, documents);
        new com.github.erosb.jsonsKema.SchemaLoader(valueOf(schema), config)
                .load()
                .accept(new TypeCheck());
    }

    private static URI nameOf(JsonNode schema, String keyword) {
        return schema.has(keyword)
                ? ReferenceResolver.resolve((URI) null, schema.get(keyword).asText())
                : null;
    }

    private static com.github.erosb.jsonsKema.JsonValue valueOf(JsonNode json) {
        if (json.isObject()) {
            Map<com.github.erosb.jsonsKema.JsonString, com.github.erosb.jsonsKema.JsonValue> members =
                    new LinkedHashMap<>();
            json.properties()
                    .forEach(member -> members.put(
                            new com.github.erosb.jsonsKema.JsonString(member.getKey()), valueOf(member.getValue())));
            return new com.github.erosb.jsonsKema.JsonObject(members);
        }
        if (json.isArray()) {
            List<com.github.erosb.jsonsKema.JsonValue> items = new ArrayList<>();
            json.forEach(item -> items.add(valueOf(item)));
            return new com.github.erosb.jsonsKema.JsonArray(items);
        }
        if (json.isTextual()) {
            return new com.github.erosb.jsonsKema.JsonString(json.asText());
        }
        if (json.isBoolean()) {
            return new com.github.erosb.jsonsKema.JsonBoolean(json.booleanValue());
        }
        if (json.isNull()) {
            return new com.github.erosb.jsonsKema.JsonNull();
        }
        return new com.github.erosb.jsonsKema.JsonNumber(json.numberValue());
    }

    private static final class NoClient implements SchemaClient {
        @Override
        public InputStream get(URI uri) {
            throw new UncheckedIOException(new IOException(uri.toString()));
        }

        @Override
        public IJsonValue getParsed(URI uri) {
            return SchemaClient.DefaultImpls.getParsed(this, uri);
        }
    }

    /** Rejects unknown types as the reference does after loading; the newer loader itself accepts any type. */
    private static final class TypeCheck extends SchemaVisitor<Object> {
        private static final Set<String> TYPES =
                Set.of("string", "number", "integer", "object", "array", "boolean", "null");
        private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());

        private Object check(IJsonValue type) {
            if (!TYPES.contains(type.requireString().getValue())) {
                throw new IllegalArgumentException();
            }
            return null;
        }

        @Override
        public Object visitTypeSchema(TypeSchema schema) {
            return check(schema.getType());
        }

        @Override
        public Object visitMultiTypeSchema(MultiTypeSchema schema) {
            schema.getTypes().getElements().forEach(this::check);
            return null;
        }

        @Override
        public Object visitDependentSchemas(DependentSchemasSchema schema) {
            schema.getDependentSchemas().values().forEach(each -> each.accept(this));
            return null;
        }

        @Override
        public Object visitCompositeSchema(CompositeSchema schema) {
            schema.getDefinedSubschemas().values().forEach(each -> each.accept(this));
            schema.getPropertySchemas().values().forEach(each -> each.accept(this));
            return super.visitCompositeSchema(schema);
        }

        @Override
        public Object visitReferenceSchema(com.github.erosb.jsonsKema.ReferenceSchema schema) {
            return seen.add(schema.getReferredSchema()) ? super.visitReferenceSchema(schema) : null;
        }
    }

    /** Writes a schema of the older loader as text: its kinds, and the properties that are compared. */
    private static final class Description {
        private final Map<Schema, Integer> around = new IdentityHashMap<>();

        String of(Schema schema) {
            if (schema == null) {
                return "-";
            }
            if (around.containsKey(schema)) {
                return "^" + (around.size() - around.get(schema));
            }
            around.put(schema, around.size());
            try {
                return kind(schema) + (schema instanceof ReferenceSchema ? "" : annotations(schema));
            } finally {
                around.remove(schema);
            }
        }

        private String annotations(Schema schema) {
            return (schema.getId() == null ? "" : "@id=" + schema.getId())
                    + (schema.getTitle() == null ? "" : "@title=" + schema.getTitle())
                    + (schema.getDescription() == null ? "" : "@description=" + schema.getDescription())
                    + (schema.hasDefaultValue() ? "@default" : "");
        }

        private String kind(Schema schema) {
            if (schema instanceof ReferenceSchema reference) {
                return "&" + of(reference.getReferredSchema());
            } else if (schema instanceof FalseSchema) {
                return "False";
            } else if (schema instanceof EmptySchema) {
                return "Empty";
            } else if (schema instanceof BooleanSchema) {
                return "Boolean";
            } else if (schema instanceof NullSchema) {
                return "Null";
            } else if (schema instanceof ConditionalSchema) {
                return "Conditional";
            } else if (schema instanceof ConstSchema) {
                return "Const";
            } else if (schema instanceof EnumSchema values) {
                return "Enum(" + values.getPossibleValues().size() + ")";
            } else if (schema instanceof NotSchema not) {
                return "Not(" + of(not.getMustNotMatch()) + ")";
            } else if (schema instanceof StringSchema string) {
                return strings(string);
            } else if (schema instanceof NumberSchema number) {
                return numbers(number);
            } else if (schema instanceof CombinedSchema combined) {
                return combined(combined);
            } else if (schema instanceof ArraySchema array) {
                return arrays(array);
            }
            return objects((ObjectSchema) schema);
        }

        private String strings(StringSchema schema) {
            String pattern =
                    schema.getPattern() == null ? "-" : schema.getPattern().pattern();
            return "String(" + schema.getMinLength() + "," + schema.getMaxLength() + "," + pattern + ")";
        }

        private String numbers(NumberSchema schema) {
            return String.join(
                    ",",
                    schema.requiresInteger() ? "Integer(" : "Number(",
                    number(schema.getMinimum()),
                    number(schema.getMaximum()),
                    number(schema.getExclusiveMinimumLimit()),
                    number(schema.getExclusiveMaximumLimit()),
                    number(schema.getMultipleOf()) + ")");
        }

        private String combined(CombinedSchema schema) {
            List<String> branches = new ArrayList<>();
            schema.getSubschemas().forEach(branch -> branches.add(of(branch)));
            Collections.sort(branches);
            return schema.getCriterion() + branches.toString();
        }

        private String arrays(ArraySchema schema) {
            List<String> items = new ArrayList<>();
            if (schema.getItemSchemas() != null) {
                schema.getItemSchemas().forEach(item -> items.add(of(item)));
            }
            return String.join(
                    ",",
                    "Array(" + schema.getMinItems() + "," + schema.getMaxItems() + "," + schema.needsUniqueItems(),
                    of(schema.getAllItemSchema()) + items,
                    schema.permitsAdditionalItems() + "," + of(schema.getSchemaOfAdditionalItems()),
                    extra(schema, "minContains") + "," + extra(schema, "maxContains") + ")");
        }

        private String objects(ObjectSchema schema) {
            Map<String, Schema> patterns = new TreeMap<>();
            schema.getPatternProperties().forEach((pattern, each) -> patterns.put(pattern.pattern(), each));
            Map<String, Set<String>> dependencies = new TreeMap<>();
            schema.getPropertyDependencies().forEach((name, names) -> dependencies.put(name, new TreeSet<>(names)));
            return String.join(
                    ",",
                    "Object(" + schema.getMinProperties() + "," + schema.getMaxProperties(),
                    new TreeSet<>(schema.getRequiredProperties()) + named(schema.getPropertySchemas()),
                    schema.permitsAdditionalProperties() + "," + of(schema.getSchemaOfAdditionalProperties()),
                    named(patterns) + dependencies + named(schema.getSchemaDependencies()) + ")");
        }

        private String named(Map<String, Schema> schemas) {
            Map<String, String> described = new TreeMap<>();
            schemas.forEach((name, schema) -> described.put(name, of(schema)));
            return described.toString();
        }

        private static String extra(Schema schema, String keyword) {
            return schema.getUnprocessedProperties().get(keyword) instanceof Number found ? number(found) : "-";
        }

        private static String number(Number number) {
            return number == null
                    ? "-"
                    : new BigDecimal(number.toString()).stripTrailingZeros().toString();
        }
    }
}
