package strata.spark;

import java.util.Map;
import org.apache.spark.sql.types.DataType;

/**
 * A logical type of dates or times, as {@code serdes/arrow/layout.py} lays it out.
 *
 * @param arrow the type of its column, by Arrow's name
 * @param low the least number allowed, in its unit
 * @param high the greatest
 * @param perSecond how many of its units a second has; 0 for days
 */
record EncodeTime(String arrow, long low, long high, long perSecond) {
    static final Map<String, EncodeTime> OF = Map.of(
        "date", new EncodeTime("date32[day]", -719_162, 2_932_896, 0),
        "time-millis", new EncodeTime("time32[ms]", 0, 86_399_999, 1_000),
        "time-micros", new EncodeTime("time64[us]", 0, 86_399_999_999L, 1_000_000),
        "timestamp-millis", instant("[ms, tz=UTC]", -62_135_596_800_000L, 253_402_300_799_999L, 1_000),
        "timestamp-micros", instant("[us, tz=UTC]", -62_135_596_800_000_000L, 253_402_300_799_999_999L, 1_000_000),
        "timestamp-nanos", instant("[ns, tz=UTC]", Long.MIN_VALUE, Long.MAX_VALUE, 1_000_000_000),
        "local-timestamp-millis", instant("[ms]", -62_135_596_800_000L, 253_402_300_799_999L, 1_000),
        "local-timestamp-micros", instant("[us]", -62_135_596_800_000_000L, 253_402_300_799_999_999L, 1_000_000),
        "local-timestamp-nanos", instant("[ns]", Long.MIN_VALUE, Long.MAX_VALUE, 1_000_000_000));

    private static EncodeTime instant(String unit, long low, long high, long perSecond) {
        return new EncodeTime("timestamp" + unit, low, high, perSecond);
    }

    /** Return the column as numbers of this type, null if Arrow does not convert it. */
    EncodeSource.Whole source(DataType column, String zone, EncodeSource.Misfit misfit) {
        if (perSecond == 0) {
            return EncodeSource.date(column, zone);
        }
        return arrow.startsWith("timestamp")
            ? EncodeSource.instant(column, perSecond, misfit)
            : EncodeSource.timeOfDay(column, zone, perSecond == 1_000, misfit);
    }
}
