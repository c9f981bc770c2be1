package strata.spark.schema;

import java.math.BigInteger;
import java.util.Locale;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import strata.spark.bytes.ProtoWire;

/**
 * The types of Protobuf's fields, by their numbers in google/protobuf/descriptor.proto: how the bytes are written, and
 * what a column holds. {@code UNKNOWN} is a number that is not a type.
 */
public enum ProtoType {
    UNKNOWN(ProtoWire.VARINT, "", 8, null),
    DOUBLE(ProtoWire.FIXED64, "double", 8, DataTypes.DoubleType),
    FLOAT(ProtoWire.FIXED32, "float", 4, DataTypes.FloatType),
    INT64(ProtoWire.VARINT, "varint", 8, DataTypes.LongType, 63, true),
    UINT64(ProtoWire.VARINT, "varint", 8, Unsigned.COLUMN, 64, false),
    INT32(ProtoWire.VARINT, "varint", 4, DataTypes.IntegerType, 31, true),
    FIXED64(ProtoWire.FIXED64, "fixed64", 8, Unsigned.COLUMN, 64, false),
    FIXED32(ProtoWire.FIXED32, "fixed32", 8, DataTypes.LongType, 32, false),
    BOOL(ProtoWire.VARINT, "varint", 1, DataTypes.BooleanType),
    STRING(ProtoWire.BYTES, "bytes", 8, DataTypes.StringType),
    GROUP(ProtoWire.START_GROUP, "group", 8, null),
    MESSAGE(ProtoWire.BYTES, "message", 8, null),
    BYTES(ProtoWire.BYTES, "bytes", 8, DataTypes.BinaryType),
    UINT32(ProtoWire.VARINT, "varint", 8, DataTypes.LongType, 32, false),
    ENUM(ProtoWire.VARINT, "varint", 8, DataTypes.StringType),
    SFIXED32(ProtoWire.FIXED32, "fixed32", 4, DataTypes.IntegerType, 31, true),
    SFIXED64(ProtoWire.FIXED64, "fixed64", 8, DataTypes.LongType, 63, true),
    SINT32(ProtoWire.VARINT, "zigzag", 4, DataTypes.IntegerType, 31, true),
    SINT64(ProtoWire.VARINT, "zigzag", 8, DataTypes.LongType, 63, true);

    private static final class Unsigned {
        /** It holds any unsigned number of 64 bits. */
        static final DataType COLUMN = DataTypes.createDecimalType(20, 0);
    }

    private static final ProtoType[] ALL = values();

    /** The wire type. */
    public final int wire;

    /** What two types have in common of which each can read the other's bytes. */
    public final String encoding;

    /** The size in bytes of a value in one of Spark's arrays. */
    public final int width;

    /** The type of a column of single values; null for messages. */
    public final DataType column;

    /** Whether it is a type of whole numbers; an enum is not. */
    public final boolean isWhole;

    /** The least and the greatest whole number. */
    public final BigInteger low;

    public final BigInteger high;

    ProtoType(int wire, String encoding, int width, DataType column) {
        this(wire, encoding, width, column, 0, false);
    }

    ProtoType(int wire, String encoding, int width, DataType column, int bits, boolean isSigned) {
        this.wire = wire;
        this.encoding = encoding;
        this.width = width;
        this.column = column;
        this.isWhole = bits > 0;
        this.high = BigInteger.ONE.shiftLeft(bits).subtract(BigInteger.ONE);
        this.low = isSigned ? high.not() : BigInteger.ZERO;
    }

    /** Return the type with a number. */
    public static ProtoType of(int number) {
        return number > 0 && number < ALL.length ? ALL[number] : UNKNOWN;
    }

    /** Return the name that schemas have. */
    public String title() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Return whether values are messages. */
    public boolean isMessage() {
        return this == MESSAGE || this == GROUP;
    }

    /** Return whether a value says where it ends, so that repeated values are not packed. */
    public boolean isSized() {
        return isMessage() || this == STRING || this == BYTES;
    }

    /** Return whether whole numbers are written so that small negative ones are short. */
    public boolean isZigzag() {
        return this == SINT32 || this == SINT64;
    }
}
