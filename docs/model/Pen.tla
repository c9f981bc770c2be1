-------------------------------- MODULE Pen --------------------------------
(***************************************************************************)
(* How the nodes of a registry write to one Kafka topic: the pen, its      *)
(* signatures, forwarding, crashes, and a broker that comes and goes.      *)
(* README.md, beside this file, maps each action to the code.              *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Nodes,      \* the nodes, each with one client
    None,       \* not a node
    Writes,     \* how many writes the client of each node makes
    Reading,    \* whether clients read
    Crashes,    \* how often a node may crash
    Outages,    \* how often the broker may go away
    Losses,     \* how often it may return without the last offset of the log
    Cuts,       \* how often a node may take a live holder for dead
    Expiries,   \* how often the broker may abort a transaction that takes too long
    Foreigns,   \* how many records a writer without the pen may write
    Flaws       \* how this design differs from the one in force: a set of names

ASSUME Flaws \subseteq {
    "own signature not noted", "waits for a holder that refuses", "lost signatures kept", "no fencing", "ids of its own for each node", "no compare of the end",
    "no compare of offsets", "acknowledges before the commit", "acknowledges before it is visible",
    "signs with the first producer alone", "signs after its first commit", "reads from memory", "reads join a read under way",
    "reads what is not committed", "never passes over a holder", "does not settle a commit"}

VARIABLES
    log,        \* what the topic holds, a record for each offset
    owner,      \* which node initialized each of the two producers last
    broker,     \* whether the broker is there
    node,       \* what each node knows, and the command that its writer carries out
    acked,      \* how many writes of each client have been acknowledged
    read,       \* the read under way, and what reads have answered
    left        \* how many faults of each kind are left

vars == <<log, owner, broker, node, acked, read, left>>

Has(flaw) == flaw \in Flaws
Unknown == -1
Gone == -1
Max(a, b) == IF a > b THEN a ELSE b
Least(S) == CHOOSE x \in S : \A y \in S : x <= y
Greatest(S) == IF S = {} THEN 0 ELSE CHOOSE x \in S : \A y \in S : y <= x

(***************************************************************************)
(* The log. A record is "sent" (staged, with the request to commit on its  *)
(* way), "prepared" (the coordinator has decided for it), "ok" (readable)  *)
(* or "void" (aborted). Markers of transactions take no offsets here.      *)
(***************************************************************************)
Offsets == DOMAIN log
Record(kind, n, p, command, id, state) ==
    [kind |-> kind, by |-> n, producer |-> p, command |-> command, id |-> id, state |-> state]
Undecided == {i \in Offsets : log[i].state \in {"sent", "prepared"}}
Stable == IF Undecided = {} THEN Len(log) ELSE Least(Undecided) - 1
IsData(i) == log[i].kind # "signature"
Durable == {i \in Offsets : IsData(i) /\ log[i].state \in {"prepared", "ok"}}
Readable(end) == {i \in 1..end : IsData(i) /\ log[i].state = "ok"}
WritesAt(offsets) == {log[i].command : i \in {j \in offsets : log[j].kind = "write"}}
SignaturesIn(from, to) == {i \in from..to : log[i].kind = "signature" /\ log[i].state = "ok"}

Aborted(IsOf(_)) ==
    [i \in Offsets |-> IF log[i].state = "sent" /\ IsOf(log[i]) THEN [log[i] EXCEPT !.state = "void"] ELSE log[i]]

(***************************************************************************)
(* A node.                                                                 *)
(***************************************************************************)
NoCommand == <<None, 0>>
Fresh == [up |-> TRUE, at |-> 0, noted |-> None, notedAt |-> 0, pen |-> FALSE, penAt |-> 0, end |-> Unknown,
          phase |-> "idle", command |-> NoCommand, waits |-> FALSE, id |-> 0, staged |-> 0, passed |-> None]
Idle(s) == [s EXCEPT !.phase = "idle", !.command = NoCommand, !.waits = FALSE, !.id = 0, !.staged = 0, !.passed = None]
HasPen(s) == s.pen /\ IF Has("own signature not noted") THEN s.notedAt <= s.penAt ELSE s.notedAt = s.penAt
Holder(n, s) == IF HasPen(s) \/ s.noted \in {n, s.passed} THEN None ELSE s.noted
Client(s) == s.command[1]
SeesSignature(s) == SignaturesIn(Max(s.notedAt, s.penAt) + 1, Stable) # {}
\* Whether a node is about to take the pen, or taking it.
IsTaking(s) == \/ s.phase \in {"sync", "settle", "take second", "signing"}
               \/ s.phase = "decided" /\ ~HasPen(s)
               \/ s.phase = "await" /\ SeesSignature(s)

\* Reading to the end: the State, and the newest signature that was not read before.
Caught(s) ==
    LET newest == Greatest(SignaturesIn(s.at + 1, Stable))
        seen == [s EXCEPT !.at = Max(s.at, Greatest({i \in 1..Stable : log[i].state = "ok"}))]
    IN IF newest > s.notedAt THEN [seen EXCEPT !.noted = log[newest].by, !.notedAt = newest] ELSE seen

Set(n, s) == node' = [node EXCEPT ![n] = s]
Answer(s) == acked' = IF s.waits THEN [acked EXCEPT ![Client(s)] = @ + 1] ELSE acked
Decided(s) == [s EXCEPT !.phase = "decided", !.id = 1 + Cardinality(Readable(s.at))]
IsWritten(s) == s.command \in WritesAt(Readable(s.at))

(***************************************************************************)
(* A client's write goes to its node, which forwards it to the holder of   *)
(* the pen; there it waits until the writer is free. The writer decides on *)
(* the State in memory, or reads the log first.                            *)
(***************************************************************************)
SyncAndDecide(n, before) ==
    LET s == Caught(before) IN
    /\ broker
    /\ IF Holder(n, s) # None THEN Set(n, Idle(s)) /\ UNCHANGED acked
       ELSE IF IsWritten(s) THEN Set(n, Idle(s)) /\ Answer(s)
       ELSE Set(n, Decided(s)) /\ UNCHANGED acked

Begin(c, n, passed) ==
    LET s == [node[n] EXCEPT !.command = <<c, acked[c] + 1>>, !.waits = TRUE, !.passed = passed] IN
    /\ node[n].up /\ node[n].phase = "idle"
    /\ \/ s.penAt # 0 /\ ~IsWritten(s) /\ Set(n, Decided(s)) /\ UNCHANGED acked
       \/ SyncAndDecide(n, s)

IsSending(c) == /\ node[c].up /\ acked[c] < Writes
                /\ \A n \in Nodes : ~(node[n].waits /\ Client(node[n]) = c)

Submit(c) ==
    LET h == Holder(c, node[c]) IN
    /\ IsSending(c)
    /\ \/ h = None /\ Begin(c, c, None)
       \/ h # None /\ ~node[h].up /\ ~Has("never passes over a holder") /\ Begin(c, c, h)
       \/ h # None /\ node[h].up /\ Holder(h, node[h]) = None /\ Begin(c, h, None)
       \/ /\ h # None /\ node[h].up /\ Holder(h, node[h]) # None /\ broker  \* it refuses: look where the pen is now
          /\ IF Holder(c, Caught(node[c])) = h /\ ~Has("waits for a holder that refuses") THEN Begin(c, c, h)
             ELSE Set(c, Caught(node[c])) /\ UNCHANGED acked
    /\ UNCHANGED <<log, owner, broker, read, left>>

\* After a lost race. A node that was fenced first waits for the signature of the node that took the pen. The wait ends
\* too when no other node is taking the pen: it is random, and much longer than taking the pen. A holder is not passed
\* over for ever: here, until it signs again.
Sync(n) ==
    LET s == [node[n] EXCEPT !.passed = IF SeesSignature(node[n]) THEN None ELSE @] IN
    /\ \/ s.phase = "sync"
       \/ s.phase = "await" /\ \/ SeesSignature(s)
                               \/ \A m \in Nodes \ {n} : ~IsTaking(node[m])
    /\ SyncAndDecide(n, s)
    /\ UNCHANGED <<log, owner, broker, read, left>>

(***************************************************************************)
(* Taking the pen: initialize both producers, sign with the first one, and *)
(* wait until the signature can be read.                                   *)
(***************************************************************************)
OwnIds == Has("ids of its own for each node")
IsFenced(n, p) == owner[p] # n /\ ~OwnIds /\ ~Has("no fencing")
MayInitialize(p) == broker /\ \A i \in Undecided : log[i].producer = p => log[i].state # "prepared"
Initialized(n, p) == Aborted(LAMBDA r : r.producer = p /\ (OwnIds => r.by = n))
Own(n, p) == owner' = IF OwnIds THEN owner ELSE [owner EXCEPT ![p] = n]
SignedOn(l, n) == Append(l, Record("signature", n, 1, NoCommand, 0, "sent"))
AfterFencing(s) == IF s.staged # 0 THEN "look" ELSE "await"
AfterTaking(s) == IF s.staged # 0 THEN "look" ELSE "decided"

TakeFirst(n) ==
    LET s == [node[n] EXCEPT !.pen = FALSE, !.end = Unknown] IN
    /\ s.phase = "settle" \/ (s.phase = "decided" /\ ~HasPen(node[n]))
    /\ IF Has("no fencing") THEN /\ broker /\ Set(n, [s EXCEPT !.pen = TRUE, !.phase = AfterTaking(s)])
                                 /\ UNCHANGED <<log, owner>>
       ELSE /\ MayInitialize(1) /\ Own(n, 1)
            /\ IF Has("signs with the first producer alone")
               THEN /\ log' = SignedOn(Initialized(n, 1), n)
                    /\ Set(n, [s EXCEPT !.phase = "signing", !.penAt = Len(log')])
               ELSE log' = Initialized(n, 1) /\ Set(n, [s EXCEPT !.phase = "take second"])
    /\ UNCHANGED <<broker, acked, read, left>>

TakeSecond(n) ==
    LET s == node[n] IN
    /\ s.phase = "take second" /\ MayInitialize(2) /\ Own(n, 2)
    /\ IF IsFenced(n, 1) THEN log' = Initialized(n, 2) /\ Set(n, [s EXCEPT !.phase = AfterFencing(s)])
       ELSE IF Has("signs after its first commit") \/ Has("signs with the first producer alone")
       THEN log' = Initialized(n, 2) /\ Set(n, [s EXCEPT !.pen = TRUE, !.phase = AfterTaking(s)])
       ELSE /\ log' = SignedOn(Initialized(n, 2), n)
            /\ Set(n, [s EXCEPT !.phase = "signing", !.penAt = Len(log')])
    /\ UNCHANGED <<broker, acked, read, left>>

Signed(n) ==
    LET s == node[n]
        isThere == s.penAt \in Offsets /\ log[s.penAt].kind = "signature" /\ log[s.penAt].by = n
        isVoid == ~isThere \/ log[s.penAt].state = "void"
        noted == IF Has("own signature not noted") THEN s ELSE [s EXCEPT !.noted = n, !.notedAt = s.penAt]
        ended == [noted EXCEPT !.end = IF Stable = s.penAt THEN Stable ELSE Unknown]
    IN /\ s.phase = "signing" /\ broker
       /\ IF isVoid THEN Set(n, [s EXCEPT !.phase = AfterFencing(s)])
          ELSE /\ Stable >= s.penAt
               /\ IF Has("signs with the first producer alone") THEN Set(n, [ended EXCEPT !.phase = "take second"])
                  ELSE Set(n, [ended EXCEPT !.pen = TRUE, !.passed = None, !.phase = AfterTaking(s)])
       /\ UNCHANGED <<log, owner, broker, acked, read, left>>

(***************************************************************************)
(* Appending.                                                              *)
(***************************************************************************)
AskEnd(n) ==
    LET s == node[n] IN
    /\ s.phase = "decided" /\ HasPen(s) /\ broker
    /\ s.end < s.at \/ s.end = Unknown
    /\ Set(n, [s EXCEPT !.end = Stable])
    /\ UNCHANGED <<log, owner, broker, acked, read, left>>

\* Nothing that a State must apply lies between what the decision has read and the end.
Allows(n, s) ==
    \/ Has("no compare of the end")
    \/ \A i \in (s.at + 1)..s.end \cap Offsets : \/ log[i].state = "void"
                                                 \/ i = s.end /\ i = s.penAt /\ log[i].kind = "signature" /\ log[i].by = n

Stage(n) ==
    LET s == node[n]
        landing == Len(log) + 1
        p == IF (landing - s.penAt) % 2 = 1 THEN 2 ELSE 1  \* the two take turns
        staged == Append(log, Record("write", n, p, s.command, s.id, IF Has("no fencing") THEN "ok" ELSE "sent"))
    IN /\ s.phase = "decided" /\ HasPen(s) /\ s.end # Unknown /\ s.end >= s.at
       /\ IF ~Allows(n, s) THEN Set(n, [s EXCEPT !.phase = "sync"]) /\ UNCHANGED log
          ELSE IF ~broker THEN FALSE
          ELSE IF IsFenced(n, p) THEN Set(n, [s EXCEPT !.pen = FALSE, !.phase = "await"]) /\ UNCHANGED log
          ELSE IF landing = s.end + 1 \/ Has("no compare of offsets")
          THEN log' = staged /\ Set(n, [s EXCEPT !.phase = "sent", !.staged = landing])
          ELSE IF Has("no fencing")  \* what was written stays, and the client gets an error
          THEN log' = staged /\ Set(n, [Idle(s) EXCEPT !.end = Unknown])
          ELSE Set(n, [s EXCEPT !.end = Unknown, !.phase = "sync"]) /\ UNCHANGED log
       /\ UNCHANGED <<owner, broker, acked, read, left>>

Suffices(i) ==
    \/ Has("acknowledges before the commit")
    \/ Has("acknowledges before it is visible") /\ log[i].state \in {"prepared", "ok"}
    \/ Stable >= i

\* The writer learns what became of its records; after a commit without an answer, once it has taken the pen again.
Committed(n) ==
    LET s == node[n]
        isThere == s.staged \in Offsets /\ log[s.staged].by = n /\ log[s.staged].command = s.command
        isVoid == ~isThere \/ log[s.staged].state = "void"
        applied == [Idle(s) EXCEPT !.at = Max(@, s.staged), !.end = IF s.phase = "sent" THEN s.staged ELSE @]
    IN /\ s.phase \in {"sent", "look"} /\ broker
       /\ IF isVoid
          THEN /\ Set(n, [s EXCEPT !.phase = "await", !.staged = 0, !.pen = @ /\ s.phase = "look"])
               /\ UNCHANGED <<log, acked>>
          ELSE /\ Suffices(s.staged) /\ Answer(s)
               /\ IF Has("signs after its first commit")
                  THEN /\ log' = Append(log, Record("signature", n, 1, NoCommand, 0, "ok"))
                       /\ Set(n, [applied EXCEPT !.noted = n, !.notedAt = Len(log'), !.penAt = Len(log'), !.end = Unknown])
                  ELSE Set(n, applied) /\ UNCHANGED log
       /\ UNCHANGED <<owner, broker, read, left>>

NoAnswerToCommit(n) ==
    LET s == [node[n] EXCEPT !.pen = FALSE, !.end = Unknown] IN
    /\ s.phase = "sent" /\ ~broker
    /\ Set(n, IF Has("does not settle a commit") THEN [s EXCEPT !.phase = "sync", !.staged = 0] ELSE [s EXCEPT !.phase = "settle"])
    /\ UNCHANGED <<log, owner, broker, acked, read, left>>

\* A step took too long while the broker was away: the client gets an error, and tries again.
GiveUp(n) ==
    LET s == node[n] IN
    /\ s.up /\ ~broker /\ s.phase \notin {"idle", "sent"}
    /\ Set(n, [Idle(s) EXCEPT !.pen = @ /\ s.phase \in {"sync", "await"}, !.end = Unknown])
    /\ UNCHANGED <<log, owner, broker, acked, read, left>>

\* A node reads the log at intervals, which matters where it shows a new signature.
Watch(n) ==
    /\ node[n].up /\ node[n].phase = "idle" /\ broker
    /\ Caught(node[n]).notedAt # node[n].notedAt
    /\ Set(n, Caught(node[n]))
    /\ UNCHANGED <<log, owner, broker, acked, read, left>>

(***************************************************************************)
(* The broker. Without reads, nothing distinguishes "prepared" from "ok".  *)
(***************************************************************************)
Prepare(i) ==
    /\ broker /\ i \in Offsets /\ log[i].state = "sent"
    /\ log' = [log EXCEPT ![i].state = IF Reading THEN "prepared" ELSE "ok"]
    /\ UNCHANGED <<owner, broker, node, acked, read, left>>

Complete(i) ==
    /\ broker /\ i \in Offsets /\ log[i].state = "prepared"
    /\ log' = [log EXCEPT ![i].state = "ok"]
    /\ UNCHANGED <<owner, broker, node, acked, read, left>>

\* The records that no reader needs go at once, and later ones move up, so that there are few states: what was aborted,
\* and each signature before a readable one (compaction drops these, since all have one key).
Needless == LET signatures == SignaturesIn(1, Stable)
                awaited == {node[n].penAt : n \in {m \in Nodes : node[m].phase = "signing"}}
            IN {i \in Offsets : log[i].state = "void"} \cup (signatures \ ({Greatest(signatures)} \cup awaited))

Tidy ==
    /\ Needless # {}
    /\ LET i == Least(Needless)
           Moved(x) == IF x >= i THEN x - 1 ELSE x
       IN
       /\ log' = SubSeq(log, 1, i - 1) \o SubSeq(log, i + 1, Len(log))
       /\ node' = [n \in Nodes |->
                   [node[n] EXCEPT !.at = Moved(@), !.notedAt = Moved(@), !.end = Moved(@),
                    !.penAt = IF @ = i /\ log[i].state = "void" THEN 0 ELSE Moved(@),
                    !.staged = IF @ = i THEN Gone ELSE Moved(@)]]
       /\ UNCHANGED <<owner, broker, acked, read, left>>

ComesBack ==
    /\ ~broker /\ broker' = TRUE
    /\ UNCHANGED <<log, owner, node, acked, read, left>>

(***************************************************************************)
(* Reads that must be fresh, one at a time, on any node. A read lease      *)
(* would belong here, as another way for `EndRead` to know the end, and in *)
(* `Signed`, as a wait before the taker's first commit.                    *)
(***************************************************************************)
NoRead == [at |-> None, must |-> {}, end |-> 0]
Acknowledged == UNION {{<<c, k>> : k \in 1..acked[c]} : c \in Nodes}

BeginRead(n) ==
    /\ Reading /\ read.now.at = None /\ node[n].up
    /\ read' = [read EXCEPT !.now = [at |-> n, must |-> Acknowledged \cup read.seen,
                                     end |-> IF Has("reads join a read under way") THEN Stable ELSE 0]]
    /\ UNCHANGED <<log, owner, broker, node, acked, left>>

EndRead(n) ==
    /\ read.now.at = n /\ broker
    /\ LET must == IF Has("reads join a read under way") THEN Acknowledged \cup read.seen ELSE read.now.must
           end == IF Has("reads from memory") THEN node[n].at
                  ELSE IF Has("reads join a read under way") THEN read.now.end
                  ELSE IF Has("reads what is not committed") THEN Len(log) ELSE Stable
           answer == WritesAt({i \in 1..end : log[i].state # "void"})
       IN read' = [read EXCEPT !.now = NoRead, !.seen = answer,
                   !.isStale = ~(must \subseteq answer) \/ ~(answer \subseteq WritesAt(Durable))]
    /\ UNCHANGED <<log, owner, broker, node, acked, left>>

(***************************************************************************)
(* Faults. Each kind happens a bounded number of times.                    *)
(***************************************************************************)
Use(fault) == left[fault] > 0 /\ left' = [left EXCEPT ![fault] = @ - 1]

Crash(n) ==
    /\ node[n].up /\ Use("crash")
    /\ node' = [m \in Nodes |-> IF m = n THEN [Fresh EXCEPT !.up = FALSE]
                                ELSE IF Client(node[m]) = n THEN [node[m] EXCEPT !.waits = FALSE] ELSE node[m]]
    /\ read' = IF read.now.at = n THEN [read EXCEPT !.now = NoRead] ELSE read
    /\ UNCHANGED <<log, owner, broker, acked>>

Restart(n) ==
    /\ ~node[n].up /\ broker
    /\ Set(n, Caught(Fresh))
    /\ UNCHANGED <<log, owner, broker, acked, read, left>>

Outage ==
    /\ broker /\ Use("outage") /\ broker' = FALSE
    /\ UNCHANGED <<log, owner, node, acked, read>>

\* The broker returns without its last second. A node that had read further reads from the start.
ComesBackWithLoss ==
    /\ ~broker /\ Len(log) > 0 /\ Use("loss") /\ broker' = TRUE
    /\ log' = SubSeq(log, 1, Len(log) - 1)
    /\ node' = [n \in Nodes |->
                LET s == node[n]
                    again == [s EXCEPT !.at = 0]
                IN IF s.at <= Len(log') THEN s
                   ELSE IF Has("lost signatures kept") \/ s.notedAt <= Len(log') THEN again
                   ELSE [again EXCEPT !.noted = None, !.notedAt = 0]]
    /\ UNCHANGED <<owner, acked, read>>

Cut(c) ==
    LET h == Holder(c, node[c]) IN
    /\ IsSending(c) /\ h # None /\ node[h].up /\ Use("cut") /\ Begin(c, c, h)
    /\ UNCHANGED <<log, owner, broker, read>>

Expire(i) ==
    /\ broker /\ i \in Offsets /\ log[i].state = "sent" /\ Use("expiry")
    /\ log' = Aborted(LAMBDA r : r.producer = log[i].producer) /\ owner' = [owner EXCEPT ![log[i].producer] = None]
    /\ UNCHANGED <<broker, node, acked, read>>

Foreign ==
    /\ broker /\ Use("foreign")
    /\ log' = Append(log, Record("foreign", None, 0, NoCommand, 0, "ok"))
    /\ UNCHANGED <<owner, broker, node, acked, read>>

Fault == Outage \/ ComesBackWithLoss \/ Foreign \/ (\E n \in Nodes : Crash(n) \/ Cut(n)) \/ (\E i \in Offsets : Expire(i))

(***************************************************************************)
(* The whole. Nothing makes a fault happen, a crashed node restart, or a   *)
(* node give up; everything else that stays possible happens.              *)
(***************************************************************************)
Run(n) == /\ node[n].up
          /\ \/ Submit(n) \/ Sync(n) \/ TakeFirst(n) \/ TakeSecond(n) \/ Signed(n)
             \/ AskEnd(n) \/ Stage(n) \/ Committed(n) \/ Watch(n)
Broker == ComesBack \/ \E i \in Offsets : Prepare(i) \/ Complete(i)

Init ==
    /\ log = <<>> /\ owner = <<None, None>> /\ broker = TRUE
    /\ node = [n \in Nodes |-> Fresh] /\ acked = [n \in Nodes |-> 0]
    /\ read = [now |-> NoRead, seen |-> {}, isStale |-> FALSE]
    /\ left = [crash |-> Crashes, outage |-> Outages, loss |-> Losses, cut |-> Cuts, expiry |-> Expiries, foreign |-> Foreigns]

Change ==
    \/ \E n \in Nodes : Run(n) \/ NoAnswerToCommit(n) \/ GiveUp(n) \/ Restart(n) \/ BeginRead(n) \/ EndRead(n)
    \/ Broker \/ Fault

Next == IF Needless # {} THEN Tidy ELSE Change

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WF_vars(Tidy) /\ WF_vars(Broker) /\ \A n \in Nodes : WF_vars(Run(n))
Symmetry == Permutations(Nodes)

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
NoAcknowledgedWriteIsLost == Acknowledged \subseteq WritesAt(Durable)
EachIsDecidedOnTheNewestState ==
    \A i \in Durable : log[i].kind = "write" => log[i].id = 1 + Cardinality({j \in Durable : j < i})
IdsAreUnique ==
    \A i, j \in Durable : i # j /\ log[i].kind = "write" /\ log[j].kind = "write"
                          => log[i].id # log[j].id /\ log[i].command # log[j].command
ReadsAreLinearizable == ~read.isStale
\* Once the faults are over, a write at any node that is up succeeds.
WritesSucceed == \A n \in Nodes : <>[](acked[n] = Writes \/ ~node[n].up)
=============================================================================
