package strata.spark.proto;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.bytes.ProtoWire;
import strata.spark.frame.FrameHeader;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.proto.ProtoMessage.Check;
import strata.spark.row.RowBuffer;
import strata.spark.schema.ProtoSchema;

/** The program of a Protobuf schema: a node for each of its messages that frames name by indexes. */
public final class ProtoProgram extends Program {
    private static final int MAX_INDEXES = 64;
    private static final int MAX_INDEX = 1 << 16;
    private static final int MAX_VARINT = 3;
    private static final int MAX_MESSAGES = 1000;

    private final ProtoSchema writer;
    private final ProtoReader reader;
    private final RowBuffer row;
    private final Cursor cursor = new Cursor();
    /** Whether frames count messages as AWS Glue does. */
    private final boolean isGlue;

    private final Map<List<Integer>, ProtoMessage> messages = new HashMap<>();
    private final Map<List<Integer>, Refusal> unreadable = new HashMap<>();
    /** The first message of the schema, which nearly all frames name; null until it is met. */
    private ProtoMessage first;

    private ProtoSchema.Message written;
    /** Finds the values that change; null in a decode. */
    private final MessageJudge judge;

    private int payload;
    private final ProtoSchema.Message firstWritten;

    public ProtoProgram(Object name, ProtoSchema writer, ProtoReader reader, RowBuffer row, MessageJudge judge) {
        super(name);
        this.judge = judge;
        this.writer = writer;
        this.reader = reader;
        this.row = row;
        this.isGlue = name instanceof FrameHeader.GlueVersion;
        this.firstWritten = writer.at(List.of(0));
    }

    /** Return the writer's message that the last frame names; null if it could not be found. */
    public ProtoSchema.Message written() {
        return written;
    }

    /** Return where the message of the last frame begins. */
    public int payload() {
        return payload;
    }

    /** Read a message; with a judge, only check it if its row would surely hold it. */
    @Override
    public void read(FrameHeader frame) {
        byte[] header = frame.header();
        ProtoMessage message;
        written = null;
        if (header == null) {
            cursor.open(frame.bytes(), frame.start(), frame.end(), false);
        } else {
            cursor.open(header, frame.start(), false);
        }
        if (first != null && cursor.at < cursor.end && cursor.bytes[cursor.at] == 0) {
            cursor.at++;
            message = first;
            written = firstWritten;
            payload = header == null ? cursor.at : frame.from();
        } else {
            List<Integer> indexes = isGlue ? List.of(varint()) : indexes();
            payload = header == null ? cursor.at : frame.from();
            message = message(indexes);
        }
        if (header != null && cursor.at != header.length) {
            throw FrameHeader.refuse(FrameHeader.TRAILING_BYTES).of(name);
        }
        read(message, frame.bytes(), frame.end());
    }

    private void read(ProtoMessage message, byte[] bytes, int end) {
        try {
            if (judge != null) {
                cursor.open(bytes, payload, end, false);
                int state = message.check.all(cursor, judge.marks(written));
                if (state == Check.SOUND && message.check.hasRoom(end - payload)) {
                    return;
                }
            }
            cursor.open(bytes, payload, end, false);
            row.begin();
            row.putField(0, message.readAll(cursor, row, 0));
            if (cursor.overwrote) { // a parser checks what was overwritten, too
                cursor.open(bytes, payload, end, false);
                message.check.all(cursor, null);
            }
        } catch (Damage found) {
            throw refuse(message, bytes, end, found);
        }
    }

    /** Check again in the order of the bytes: what a parser finds comes before values that do not fit their column. */
    private Refusal refuse(ProtoMessage message, byte[] bytes, int end, Damage found) {
        Damage first = found;
        try {
            cursor.open(bytes, payload, end, true);
            if ((message.check.all(cursor, null) & Check.MISTYPED) != 0) {
                first = ProtoWire.malformed();
            }
        } catch (Damage parsing) {
            first = parsing;
        }
        String reason = first.reason.equals(Damage.TRUNCATED) ? Damage.MALFORMED : first.reason;
        boolean isParsing = first != found || reason.equals(Damage.MALFORMED);
        String detail = isParsing ? ": not a " + reader.message : first.place();
        return new Refusal(reason, name, reason + detail);
    }

    // Messages

    private ProtoMessage message(List<Integer> indexes) {
        written = isGlue ? writer.atPlace(indexes.get(0)) : writer.at(indexes);
        ProtoMessage known = messages.get(indexes);
        if (known != null) {
            return known;
        }
        if (unreadable.containsKey(indexes)) {
            throw unreadable.get(indexes);
        }
        if (written == null) { // not cached: a damaged frame may have any indexes
            String where = isGlue ? indexes.get(0) + " as AWS Glue counts" : "at " + shortened(indexes);
            throw new Refusal(Damage.INVALID_INDEX, name, "the schema has no message " + where);
        }
        if (messages.size() + unreadable.size() >= MAX_MESSAGES) {
            messages.clear();
            unreadable.clear();
        }
        ProtoMessage made = compile(indexes);
        messages.put(indexes, made);
        if (indexes.equals(List.of(0))) {
            first = made;
        }
        return made;
    }

    private ProtoMessage compile(List<Integer> indexes) {
        if (!written.name.equals(reader.message)) {
            String message = "expected a " + reader.message + ", got a " + written.name;
            unreadable.put(indexes, new Refusal("message is " + written.name, name, message));
            throw unreadable.get(indexes);
        }
        try {
            return reader.compile(written);
        } catch (Damage mismatch) {
            unreadable.put(indexes, new Refusal(mismatch.letterReason(), name, mismatch.letterReason()));
            throw unreadable.get(indexes);
        }
    }

    private static List<Integer> shortened(List<Integer> indexes) {
        return indexes.subList(0, Math.min(indexes.size(), 5));
    }

    // Indexes

    private List<Integer> indexes() {
        int count = index();
        if (count == 0) {
            return List.of(0);
        }
        if (count > MAX_INDEXES) {
            throw FrameHeader.refuse("too many message indexes").of(name);
        }
        List<Integer> indexes = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            indexes.add(index());
        }
        return indexes;
    }

    private int index() {
        int number = varint();
        if ((number & 1) != 0 || number >> 1 >= MAX_INDEX) {
            throw outOfRange();
        }
        return number >> 1;
    }

    private int varint() {
        int number = 0;
        for (int place = 0; place < MAX_VARINT; place++) {
            if (cursor.at >= cursor.end) {
                throw FrameHeader.refuse("frame too short").of(name);
            }
            byte next = cursor.bytes[cursor.at++];
            number |= (next & 0x7F) << 7 * place;
            if (next >= 0) {
                return number;
            }
        }
        throw outOfRange();
    }

    private Refusal outOfRange() {
        return FrameHeader.refuse("a message index is out of range").of(name);
    }
}
