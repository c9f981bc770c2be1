package strata.spark.proto;

import java.util.HashMap;
import java.util.Map;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program.Changes;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.ProtoSchema.Message;

/** Finds the values of messages that a candidate reads otherwise than they were written; {@link MessageChanges} compares. */
public final class MessageJudge {
    private static final int MAX_WRITERS = 1000;

    private final Message reader;
    private final Map<Message, MessageDoubts> doubts = new HashMap<>();
    private final Cursor cursor = new Cursor();
    /** The writer of the last message, and its doubts. */
    private Message last;

    private MessageDoubts ofLast;
    private IllegalArgumentException unsupported;

    public MessageJudge(ProtoSchema candidate, String message) {
        reader = candidate.named(message);
    }

    /** Return what marks the fields of a message that may change; null if all of its bytes have to be looked at. */
    ProtoMessage.Marks marks(Message writer) {
        return isOfReader(writer) && known(writer) ? ofLast.marks() : null;
    }

    /**
     * Return whether the candidate may have other values of a message than were written.
     *
     * @param writer the message as the writer's schema has it; null if it is not known
     * @param start where the message begins in the bytes
     * @param end where it ends
     * @param isDecoded whether the message was decoded, after {@link #marks}
     * @throws IllegalArgumentException if messages of this schema cannot be compared
     */
    public boolean mayChange(Message writer, byte[] bytes, int start, int end, boolean isDecoded) {
        if (!isOfReader(writer)) {
            return false;
        }
        if (!known(writer)) {
            throw unsupported;
        }
        if (!ofLast.mayChange()) {
            return false;
        }
        cursor.open(bytes, start, end, false);
        try {
            return isDecoded && ofLast.marks() != null ? ofLast.isInDoubtWhereMarked(cursor) : ofLast.isInDoubt(cursor);
        } catch (Damage malformed) {
            return true;
        }
    }

    private boolean isOfReader(Message writer) {
        return writer != null && (writer.equals(last) || writer.name.equals(reader.name));
    }

    /** Find the doubts of a writer; return whether there are any, or its messages cannot be compared. */
    private boolean known(Message writer) {
        if (!writer.equals(last)) {
            last = writer;
            try {
                ofLast = of(writer);
            } catch (IllegalArgumentException edition) {
                ofLast = null;
                unsupported = edition;
            }
        }
        return ofLast != null;
    }

    private MessageDoubts of(Message writer) {
        MessageDoubts known = doubts.get(writer);
        if (known == null) {
            known = MessageDoubts.of(writer, reader);
            if (doubts.size() >= MAX_WRITERS) {
                doubts.clear();
            }
            doubts.put(writer, known);
        }
        return known;
    }

    /**
     * Find the changes of a message.
     *
     * @param name the name of the schema in its frame
     * @param start where the message begins in the bytes
     * @param end where it ends
     * @param isDecoded whether the message was decoded, so that only the fields that may change are looked at
     * @throws Refusal if a parser refuses its bytes, or the candidate requires a field that it lacks
     */
    public void find(
            Object name, Message writer, byte[] bytes, int start, int end, Changes changes, boolean isDecoded) {
        MessageDoubts known = of(writer);
        MessageDoubts watch = isDecoded && !known.isRequiring() ? known : null;
        ProtoMessage.Marks marks = isDecoded ? known.marks() : null;
        if (marks != null) {
            cursor.open(bytes, start, end, false);
            if (known.tellWhereMarked(cursor, changes)) {
                return;
            }
        }
        cursor.open(bytes, start, end, false);
        ProtoTree written = parsed(name, new ProtoTree(writer, watch), marks);
        cursor.open(bytes, start, end, false);
        ProtoTree read = parsed(name, new ProtoTree(reader, watch), marks);
        if (known.isRequiring()) {
            String missing = MessageChanges.missing(written, "") == null ? MessageChanges.missing(read, "") : null;
            if (missing != null) {
                String reason = Damage.MALFORMED + ": the message lacks a required field";
                throw new Refusal(reason, name, reason, missing);
            }
        }
        new MessageChanges(changes).compare(written, read, "");
    }

    private ProtoTree parsed(Object name, ProtoTree tree, ProtoMessage.Marks marks) {
        try {
            tree.readAll(cursor, marks);
            return tree;
        } catch (Damage damage) {
            throw new Refusal(damage.reason, name, damage.getMessage());
        }
    }
}
