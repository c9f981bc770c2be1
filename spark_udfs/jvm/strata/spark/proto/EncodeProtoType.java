package strata.spark.proto;

import java.math.BigInteger;

/** The types of Protobuf's fields, in the order of their numbers in descriptors, with the range of whole numbers. */
enum EncodeProtoType {
    DOUBLE(EncodeProtoValue.EIGHT),
    FLOAT(EncodeProtoValue.FOUR),
    INT64(EncodeProtoValue.VARINT, 63, true, false),
    UINT64(EncodeProtoValue.VARINT, 64, false, false),
    INT32(EncodeProtoValue.VARINT, 31, true, false),
    FIXED64(EncodeProtoValue.EIGHT, 64, false, false),
    FIXED32(EncodeProtoValue.FOUR, 32, false, false),
    BOOL(EncodeProtoValue.VARINT),
    STRING(EncodeProtoValue.SIZED),
    GROUP(-1),
    MESSAGE(EncodeProtoValue.SIZED),
    BYTES(EncodeProtoValue.SIZED),
    UINT32(EncodeProtoValue.VARINT, 32, false, false),
    ENUM(EncodeProtoValue.VARINT, 31, true, false),
    SFIXED32(EncodeProtoValue.FOUR, 31, true, false),
    SFIXED64(EncodeProtoValue.EIGHT, 63, true, false),
    SINT32(EncodeProtoValue.VARINT, 31, true, true),
    SINT64(EncodeProtoValue.VARINT, 63, true, true);

    final int wire;
    public final BigInteger low;
    public final BigInteger high;
    final boolean isZigzag;

    EncodeProtoType(int wire) {
        this(wire, 0, false, false);
    }

    EncodeProtoType(int wire, int bits, boolean isSigned, boolean isZigzag) {
        this.wire = wire;
        this.high = BigInteger.ONE.shiftLeft(bits).subtract(BigInteger.ONE);
        this.low = isSigned ? high.not() : BigInteger.ZERO;
        this.isZigzag = isZigzag;
    }

    /** Return the type with a number. */
    public static EncodeProtoType of(int number) {
        return values()[number - 1];
    }
}
