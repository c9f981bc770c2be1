package strata.spark.avro;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import strata.spark.avro.EncodeNode.EncodeContainers;
import strata.spark.avro.SparkTypes.Logical;
import strata.spark.schema.SchemaTexts;
import strata.spark.write.EncodeOutput;
import strata.spark.write.EncodeOutput.EncodeFailure;
import strata.spark.write.EncodeOutput.EncodeWriter;
import strata.spark.write.EncodeSource;
import strata.spark.write.EncodeSource.EncodeTime;
import strata.spark.write.EncodeSource.EncodeTypes;

/**
 * Writes Avro frames: compiles a schema and a column's type to nodes, by the rules of {@code serdes/arrow/encode.py}.
 *
 * <p>A union of several types is a struct of member0, member1 and so on; of two types of numbers, the wider number.
 */
public final class EncodeAvro implements EncodeWriter {
    private static final String ABSENT = "no such column, and null is not allowed";

    private final EncodeTypes types;
    private final byte[] prefix;
    private final EncodeNode root;
    private final EncodeOutput out = new EncodeOutput();
    /** How many columns of single values there are so far. */
    private int columns;

    /**
     * @param texts the schema, as {@link SchemaTexts} writes it
     * @param prefix the bytes before each payload
     * @throws EncodeFailure if the column does not fit the schema
     */
    public EncodeAvro(String texts, byte[] prefix, DataType column, EncodeTypes types) {
        this.types = types;
        this.prefix = prefix;
        Schema schema = SchemaTexts.read(texts);
        // A payload that is bytes as a whole has no length.
        this.root = schema.getType() == Schema.Type.BYTES && !(column instanceof NullType)
                ? bytes(schema, column, "", Scalars.REST)
                : node(schema, column, "");
    }

    @Override
    public byte[] write(InternalRow row) {
        try {
            out.begin(prefix);
            root.write(row, 0, out);
            return out.frame();
        } catch (EncodeFailure failure) {
            out.beginSearch();
            root.write(row, 0, out);
            throw out.found() == null ? failure : out.found();
        }
    }

    private EncodeNode node(Schema schema, DataType column, String path) {
        return switch (schema.getType()) {
            case NULL -> new EncodeNode.Null(path);
            case UNION -> union(schema, column, path);
            case RECORD -> record(schema, column, path);
            case ARRAY -> items(schema, column, path);
            case MAP -> entries(schema, column, path);
            default -> scalar(schema, column, path);
        };
    }

    // Types without others inside

    private EncodeNode scalar(Schema schema, DataType column, String path) {
        columns++;
        return switch (schema.getType()) {
            case BOOLEAN -> fitting(column instanceof BooleanType, new EncodeNode.Flag(path), column, "bool", path);
            case INT, LONG -> whole(schema, column, path);
            case FLOAT, DOUBLE -> real(schema, column, path);
            case STRING -> new EncodeNode.Text(path, text(column, path));
            case ENUM -> new EncodeNode.Symbol(path, schema.getEnumSymbols(), text(column, path));
            case FIXED -> bytes(schema, column, path, schema.getFixedSize());
            default -> bytes(schema, column, path, Scalars.PREFIXED);
        };
    }

    /** Return a node, or throw the failure of a column of another type. A column without values fits any type. */
    private EncodeNode fitting(boolean fits, EncodeNode node, DataType column, String wanted, String path) {
        if (fits || column instanceof NullType) {
            return node;
        }
        throw conversion(wanted, path).ofColumn(column, types);
    }

    private EncodeSource.Conversion conversion(String wanted, String path) {
        return new EncodeSource.Conversion(columns, wanted, path);
    }

    private EncodeNode whole(Schema schema, DataType column, String path) {
        Logical logical = Logical.of(schema);
        EncodeTime time = logical == null ? null : EncodeTime.OF.get(logical.name());
        int bits = schema.getType() == Schema.Type.INT ? Integer.SIZE : Long.SIZE;
        EncodeSource.Conversion conversion = conversion(time == null ? "int" + bits : time.arrow(), path);
        EncodeSource.Whole source = time == null
                ? EncodeSource.integer(column, bits, conversion)
                : time.source(column, types.zone(), conversion);
        long low = time == null ? -1L << bits - 1 : time.low();
        long high = time == null ? (1L << bits - 1) - 1 : time.high();
        return fitting(
                source != null, new EncodeNode.Whole(path, source, low, high), column, conversion.wanted(), path);
    }

    private EncodeNode real(Schema schema, DataType column, String path) {
        boolean isDouble = schema.getType() == Schema.Type.DOUBLE;
        EncodeSource.Conversion conversion = conversion(isDouble ? "double" : "float", path);
        EncodeSource.Real source = EncodeSource.real(column, isDouble, conversion);
        return fitting(source != null, new EncodeNode.Real(path, source, isDouble), column, conversion.wanted(), path);
    }

    /** Return null for a column of strings, and the refusal of bytes that are not UTF-8 for one of bytes. */
    private EncodeSource.Conversion text(DataType column, String path) {
        EncodeSource.Conversion conversion = conversion("string", path);
        fitting(column instanceof StringType || column instanceof BinaryType, null, column, "string", path);
        return column instanceof BinaryType ? conversion : null;
    }

    private EncodeNode bytes(Schema schema, DataType column, String path, int size) {
        Logical logical = Logical.of(schema);
        if (logical != null && logical.name().equals("decimal")) {
            return decimal(logical, column, path, size);
        }
        boolean isText = column instanceof StringType;
        EncodeNode node = new EncodeNode.Bytes(path, isText, size);
        return fitting(isText || column instanceof BinaryType, node, column, "binary", path);
    }

    private EncodeNode decimal(Logical logical, DataType column, String path, int size) {
        String wide = logical.precision() > DecimalType.MAX_PRECISION() ? "decimal256(" : "decimal128(";
        EncodeSource.Conversion conversion =
                conversion(wide + logical.precision() + ", " + logical.scale() + ")", path);
        EncodeSource.Exact source = EncodeSource.decimal(column, logical.precision(), logical.scale(), conversion);
        boolean isSame = column instanceof DecimalType given
                && given.scale() == logical.scale()
                && given.precision() <= logical.precision();
        EncodeNode node = new EncodeNode.Decimal(path, source, isSame ? (DecimalType) column : null, size);
        return fitting(source != null, node, column, conversion.wanted(), path);
    }

    // Types with others inside

    private EncodeNode record(Schema schema, DataType column, String path) {
        List<String> names = schema.getFields().stream().map(Schema.Field::name).toList();
        StructType struct = struct(column, path);
        Map<String, Integer> places = EncodeTypes.places(struct, names, path);
        EncodeNode[] fields = new EncodeNode[names.size()];
        int[] from = new int[names.size()];
        for (Schema.Field field : schema.getFields()) {
            String inner = EncodeFailure.within(path, "." + field.name());
            Integer place = places.get(field.name());
            if (place == null && !(column instanceof NullType) && !isNullable(field.schema())) {
                throw new EncodeFailure(ABSENT, inner);
            }
            DataType kind = place == null ? DataTypes.NullType : struct.fields()[place].dataType();
            fields[field.pos()] = node(field.schema(), kind, inner);
            from[field.pos()] = place == null ? -1 : place;
        }
        return new EncodeContainers.Struct(path, struct.size(), fields, from);
    }

    private StructType struct(DataType column, String path) {
        if (column instanceof NullType) {
            return new StructType();
        }
        if (column instanceof StructType struct) {
            return struct;
        }
        throw new EncodeFailure("expected a struct, got " + types.name(column), path);
    }

    private static boolean isNullable(Schema schema) {
        return schema.getType() == Schema.Type.NULL || schema.getType() == Schema.Type.UNION && nullIndex(schema) >= 0;
    }

    private EncodeNode items(Schema schema, DataType column, String path) {
        if (!(column instanceof ArrayType) && !(column instanceof NullType)) {
            throw new EncodeFailure("expected a list, got " + types.name(column), path);
        }
        DataType inner = column instanceof ArrayType array ? array.elementType() : column;
        return new EncodeContainers.Items(path, node(schema.getElementType(), inner, path + "[]"));
    }

    private EncodeNode entries(Schema schema, DataType column, String path) {
        if (!(column instanceof MapType) && !(column instanceof NullType)) {
            throw new EncodeFailure("expected a map, got " + types.name(column), path);
        }
        String inner = path + "{}";
        DataType keys = column instanceof MapType map ? map.keyType() : column;
        DataType values = column instanceof MapType map ? map.valueType() : column;
        EncodeNode key = scalar(Schema.create(Schema.Type.STRING), keys, inner);
        return new EncodeContainers.Entries(path, key, node(schema.getValueType(), values, inner));
    }

    // Unions

    private EncodeNode union(Schema schema, DataType column, String path) {
        List<Schema> branches = schema.getTypes();
        List<Integer> others = IntStream.range(0, branches.size())
                .filter(i -> branches.get(i).getType() != Schema.Type.NULL)
                .boxed()
                .toList();
        int nullIndex = nullIndex(schema);
        if (others.isEmpty()) {
            return new EncodeContainers.Branch(path, new EncodeNode.Null(path), nullIndex, nullIndex);
        }
        int widest = others.size() == 1 ? others.get(0) : widest(branches, others);
        if (widest >= 0) {
            return new EncodeContainers.Branch(path, node(branches.get(widest), column, path), widest, nullIndex);
        }
        return members(schema, others, nullIndex, column, path);
    }

    private static int nullIndex(Schema union) {
        List<Schema> branches = union.getTypes();
        return IntStream.range(0, branches.size())
                .filter(i -> branches.get(i).getType() == Schema.Type.NULL)
                .findFirst()
                .orElse(-1);
    }

    /** Return the index of the wider of two types of numbers, or -1. */
    private static int widest(List<Schema> branches, List<Integer> others) {
        List<Schema.Type> kinds =
                others.stream().map(i -> branches.get(i).getType()).toList();
        for (List<Schema.Type> pair : WIDER) {
            if (kinds.size() == 2 && kinds.containsAll(pair)) {
                return others.get(kinds.indexOf(pair.get(1)));
            }
        }
        return -1;
    }

    private static final List<List<Schema.Type>> WIDER =
            List.of(List.of(Schema.Type.INT, Schema.Type.LONG), List.of(Schema.Type.FLOAT, Schema.Type.DOUBLE));

    private EncodeNode members(Schema schema, List<Integer> others, int nullIndex, DataType column, String path) {
        List<String> names =
                IntStream.range(0, others.size()).mapToObj(i -> "member" + i).toList();
        StructType struct = struct(column, path);
        Map<String, Integer> places = EncodeTypes.places(struct, names, path);
        List<EncodeNode> members = new ArrayList<>();
        for (int i = 0; i < names.size(); i++) {
            Integer place = places.get(names.get(i));
            DataType kind = place == null ? DataTypes.NullType : struct.fields()[place].dataType();
            members.add(node(schema.getTypes().get(others.get(i)), kind, EncodeFailure.within(path, "|" + i)));
        }
        return new EncodeContainers.Members(
                path,
                struct.size(),
                members.toArray(EncodeNode[]::new),
                names.stream().mapToInt(name -> places.getOrDefault(name, -1)).toArray(),
                others.stream().mapToInt(i -> i).toArray(),
                nullIndex);
    }
}
