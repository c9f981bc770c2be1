-------------------------------- MODULE Pen --------------------------------
(***************************************************************************)
(* How the nodes of a registry write to one Kafka topic: the pen, its      *)
(* signatures, forwarding, crashes, a broker that comes and goes, and the  *)
(* lease with which the holder of the pen answers reads from memory.       *)
(* README.md, beside this file, maps each action to the code.              *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Nodes,      \* the nodes
    Clients,    \* the nodes that have a client which writes
    None,       \* not a node
    Writes,     \* how many writes each client makes
    Reading,    \* whether clients read
    Crashes,    \* how often a node may crash
    Outages,    \* how often the broker may go away
    Losses,     \* how often it may return without the last offset of the log
    Cuts,       \* how often a node may take a live holder for dead
    Expiries,   \* how often the broker may abort a transaction that takes too long
    Foreigns,   \* how many records a writer without the pen may write
    Leases,     \* whether the holder of the pen may answer reads from memory
    Flaws       \* how this design differs from the one in force: a set of names

ASSUME Clients \subseteq Nodes
ASSUME Flaws \subseteq {
    "own signature not noted", "waits for a holder that refuses", "lost signatures kept", "no fencing", "ids of its own for each node", "no compare of the end",
    "no compare of offsets", "acknowledges before the commit", "acknowledges before it is visible",
    "signs with the first producer alone", "signs after its first commit", "reads from memory", "reads join a read under way",
    "reads what is not committed", "never passes over a holder", "does not settle a commit",
    "no wait for leases", "waits before the acknowledgement only", "waits before its signature is readable",
    "lease from the receipt", "lease kept during a commit", "lease without the pen"}

VARIABLES
    log,        \* what the topic holds, a record for each offset
    base,       \* how many writes of each client have left `log`, because nothing depends on their place any more
    owner,      \* which node initialized each of the two producers last
    broker,     \* whether the broker is there
    node,       \* what each node knows, and the command that its writer carries out
    acked,      \* how many writes of each client have been acknowledged
    read,       \* the read under way, and what reads have answered
    left        \* how many faults of each kind are left

vars == <<log, base, owner, broker, node, acked, read, left>>

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
StableIn(l) == LET undecided == {i \in DOMAIN l : l[i].state \in {"sent", "prepared"}}
               IN IF undecided = {} THEN Len(l) ELSE Least(undecided) - 1
Stable == StableIn(log)
IsData(i) == log[i].kind # "signature"
Durable == {i \in Offsets : IsData(i) /\ log[i].state \in {"prepared", "ok"}}
Readable(end) == {i \in 1..end : IsData(i) /\ log[i].state = "ok"}
WritesAt(offsets) == {log[i].command : i \in {j \in offsets : log[j].kind = "write"}}
SignaturesIn(from, to) == {i \in from..to : log[i].kind = "signature" /\ log[i].state = "ok"}

Aborted(IsOf(_)) ==
    [i \in Offsets |-> IF log[i].state = "sent" /\ IsOf(log[i]) THEN [log[i] EXCEPT !.state = "void"] ELSE log[i]]

(***************************************************************************)
(* A node. Its lease is "off", "asked" (its question for the end of the    *)
(* log has been answered, and the answer is under way) or "on"; `begun` is *)
(* the nodes that have begun to wait for leases since the question.        *)
(***************************************************************************)
NoCommand == <<None, 0>>
Fresh == [up |-> TRUE, at |-> 0, noted |-> None, notedAt |-> 0, pen |-> FALSE, penAt |-> 0, end |-> Unknown, turn |-> 1,
          phase |-> "idle", command |-> NoCommand, waits |-> FALSE, id |-> 0, staged |-> 0, passed |-> None,
          lease |-> "off", begun |-> {}]
Idle(s) == [s EXCEPT !.phase = "idle", !.command = NoCommand, !.waits = FALSE, !.id = 0, !.staged = 0, !.passed = None]
Unleased(s) == [s EXCEPT !.lease = "off", !.begun = {}]
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

(***************************************************************************)
(* Every step ends here: it leaves a log, nodes, acknowledgements and      *)
(* reads. What nothing depends on any more goes at once, and later records *)
(* move up, so that there are few states:                                  *)
(* - what was aborted;                                                     *)
(* - each signature before a readable one (compaction drops these too,     *)
(*   since all have one key);                                              *)
(* - writes that are acknowledged, that every running node has read, and   *)
(*   that no node is still trying to make: `base` counts them, and the ids *)
(*   that were given after them count from there;                          *)
(* - what a node without the pen remembers of the time when it had it.     *)
(***************************************************************************)
Become(l, nodes, acks, reads) ==
    LET stable == StableIn(l)
        running == {n \in Nodes : nodes[n].up}
        signatures == {i \in 1..stable : l[i].kind = "signature" /\ l[i].state = "ok"}
        awaited == {nodes[n].penAt : n \in {m \in Nodes : nodes[m].phase = "signing"}}
        readByAll == Least({stable} \cup {nodes[n].at : n \in running})
        IsDone(command) == /\ command[2] <= acks[command[1]]
                           /\ \A n \in Nodes : Client(nodes[n]) = command[1] => nodes[n].command[2] > command[2]
        settled == IF Losses > 0 THEN {}
                   ELSE {i \in 1..readByAll : l[i].kind = "write" /\ l[i].state = "ok" /\ IsDone(l[i].command)}
        void == {i \in DOMAIN l : l[i].state = "void"}
        needless == void \cup settled \cup (signatures \ ({Greatest(signatures)} \cup awaited))
        Moved(x) == IF x <= 0 THEN x ELSE Cardinality((1..x) \ needless)
        Id(id, x) == IF id = 0 THEN 0 ELSE id - Cardinality({i \in settled : i <= x})
        Place(x) == CHOOSE i \in DOMAIN l : i \notin needless /\ Moved(i) = x
        Tidied(s) ==
            LET moved == IF needless = {} THEN s
                         ELSE [s EXCEPT !.at = Moved(@), !.notedAt = Moved(@), !.end = Moved(@), !.id = Id(@, s.at),
                                        !.penAt = IF @ \in void THEN 0 ELSE Moved(@),
                                        !.staged = IF @ \in needless THEN Gone ELSE Moved(@)]
                begun == {n \in s.begun : nodes[n].pen \/ nodes[n].phase = "signing"}
            IN IF s.pen \/ Has("lease without the pen") THEN [moved EXCEPT !.begun = begun]
               ELSE IF s.phase = "signing" THEN Unleased(moved)
               ELSE [Unleased(moved) EXCEPT !.end = Unknown, !.turn = 1, !.penAt = IF Has("own signature not noted") THEN @ ELSE 0]
        done == {l[i].command : i \in settled}
    IN /\ log' = IF needless = {} THEN l
                 ELSE [x \in 1..Moved(Len(l)) |-> LET i == Place(x) IN [l[i] EXCEPT !.id = Id(@, i)]]
       /\ base' = [c \in Nodes |-> base[c] + Cardinality({command \in done : command[1] = c})]
       /\ node' = [n \in Nodes |-> Tidied(nodes[n])]
       /\ acked' = acks
       /\ read' = IF done = {} THEN reads
                  ELSE [reads EXCEPT !.seen = @ \ done, !.now.must = @ \ done, !.now.end = Moved(@)]

With(n, s) == [node EXCEPT ![n] = s]
Set(n, s) == Become(log, With(n, s), acked, read)
Answered(s) == IF s.waits THEN [acked EXCEPT ![Client(s)] = @ + 1] ELSE acked
Decided(s) == [s EXCEPT !.phase = "decided", !.id = 1 + Cardinality(Readable(s.at))]
IsWritten(s) == s.command[2] <= base[Client(s)] \/ s.command \in WritesAt(Readable(s.at))

(***************************************************************************)
(* A client's write goes to its node, which forwards it to the holder of   *)
(* the pen; there it waits until the writer is free. The writer decides on *)
(* the State in memory, or reads the log first.                            *)
(***************************************************************************)
SyncAndDecide(n, before) ==
    LET s == Caught(before) IN
    /\ broker
    /\ IF Holder(n, s) # None THEN Set(n, Idle(s))
       ELSE IF IsWritten(s) THEN Become(log, With(n, Idle(s)), Answered(s), read)
       ELSE Set(n, Decided(s))

Begin(c, n, passed) ==
    LET s == [node[n] EXCEPT !.command = <<c, acked[c] + 1>>, !.waits = TRUE, !.passed = passed] IN
    /\ node[n].up /\ node[n].phase = "idle"
    /\ \/ HasPen(s) /\ ~IsWritten(s) /\ Set(n, Decided(s))
       \/ SyncAndDecide(n, s)

IsSending(c) == /\ c \in Clients /\ node[c].up /\ acked[c] < Writes
                /\ \A n \in Nodes : ~(node[n].waits /\ Client(node[n]) = c)

Submit(c) ==
    LET h == Holder(c, node[c]) IN
    /\ IsSending(c)
    /\ \/ h = None /\ Begin(c, c, None)
       \/ h # None /\ ~node[h].up /\ ~Has("never passes over a holder") /\ Begin(c, c, h)
       \/ h # None /\ node[h].up /\ Holder(h, node[h]) = None /\ Begin(c, h, None)
       \/ /\ h # None /\ node[h].up /\ Holder(h, node[h]) # None /\ broker  \* it refuses: look where the pen is now
          /\ IF Holder(c, Caught(node[c])) = h /\ ~Has("waits for a holder that refuses") THEN Begin(c, c, h)
             ELSE Set(c, Caught(node[c]))
    /\ UNCHANGED <<owner, broker, left>>

\* After a lost race. A node that was fenced first waits for the signature of the node that took the pen. The wait ends
\* too when no other node is taking the pen: it is random, and much longer than taking the pen. A holder is not passed
\* over for ever: here, until it signs again.
Sync(n) ==
    LET s == [node[n] EXCEPT !.passed = IF SeesSignature(node[n]) THEN None ELSE @] IN
    /\ \/ s.phase = "sync"
       \/ s.phase = "await" /\ \/ SeesSignature(s)
                               \/ \A m \in Nodes \ {n} : ~IsTaking(node[m])
    /\ SyncAndDecide(n, s)
    /\ UNCHANGED <<owner, broker, left>>

(***************************************************************************)
(* Taking the pen: initialize both producers, sign with the first one, and *)
(* wait until the signature can be read. From then on the node also waits  *)
(* until each lease has run out whose question is older.                   *)
(***************************************************************************)
OwnIds == Has("ids of its own for each node")
IsFenced(n, p) == owner[p] # n /\ ~OwnIds /\ ~Has("no fencing")
MayInitialize(p) == broker /\ \A i \in Offsets : log[i].producer = p => log[i].state # "prepared"
Initialized(n, p) == Aborted(LAMBDA r : r.producer = p /\ (OwnIds => r.by = n))
Own(n, p) == owner' = IF OwnIds THEN owner ELSE [owner EXCEPT ![p] = n]
SignedOn(l, n) == Append(l, Record("signature", n, 1, NoCommand, 0, "sent"))
AfterFencing(s) == IF s.staged # 0 THEN "look" ELSE "await"
AfterTaking(s) == IF s.staged # 0 THEN "look" ELSE "decided"

\* The nodes, with node `n` waiting for the leases that they have now.
WaitingFor(n, s) ==
    [m \in Nodes |-> IF m = n THEN s
                     ELSE IF node[m].lease = "off" THEN node[m] ELSE [node[m] EXCEPT !.begun = @ \cup {n}]]
IsWaiting(n) == \E m \in Nodes : n \in node[m].begun

TakeFirst(n) ==
    LET s == [node[n] EXCEPT !.pen = FALSE, !.end = Unknown] IN
    /\ s.phase = "settle" \/ (s.phase = "decided" /\ ~HasPen(node[n]))
    /\ IF Has("no fencing") THEN broker /\ Set(n, [s EXCEPT !.pen = TRUE, !.phase = AfterTaking(s)]) /\ UNCHANGED owner
       ELSE /\ MayInitialize(1) /\ Own(n, 1)
            /\ IF Has("signs with the first producer alone")
               THEN LET l == SignedOn(Initialized(n, 1), n)
                    IN Become(l, With(n, [s EXCEPT !.phase = "signing", !.penAt = Len(l)]), acked, read)
               ELSE Become(Initialized(n, 1), With(n, [s EXCEPT !.phase = "take second"]), acked, read)
    /\ UNCHANGED <<broker, left>>

TakeSecond(n) ==
    LET s == node[n]
        l == Initialized(n, 2)
        signing == [s EXCEPT !.phase = "signing", !.penAt = Len(l) + 1]
    IN /\ s.phase = "take second" /\ MayInitialize(2) /\ Own(n, 2)
       /\ IF IsFenced(n, 1) THEN Become(l, With(n, [s EXCEPT !.phase = AfterFencing(s)]), acked, read)
          ELSE IF Has("signs after its first commit") \/ Has("signs with the first producer alone")
          THEN Become(l, With(n, [s EXCEPT !.pen = TRUE, !.phase = AfterTaking(s)]), acked, read)
          ELSE Become(SignedOn(l, n),
                      IF Has("waits before its signature is readable") THEN WaitingFor(n, signing) ELSE With(n, signing),
                      acked, read)
       /\ UNCHANGED <<broker, left>>

Signed(n) ==
    LET s == node[n]
        isThere == s.penAt \in Offsets /\ log[s.penAt].kind = "signature" /\ log[s.penAt].by = n
        isVoid == ~isThere \/ log[s.penAt].state = "void"
        noted == IF Has("own signature not noted") THEN s ELSE [s EXCEPT !.noted = n, !.notedAt = s.penAt]
        ended == [noted EXCEPT !.end = IF Stable = s.penAt THEN Stable ELSE Unknown]
        holds == [ended EXCEPT !.pen = TRUE, !.turn = 2, !.passed = None, !.phase = AfterTaking(s)]
        isWaitOver == Has("no wait for leases") \/ Has("waits before its signature is readable")
    IN /\ s.phase = "signing" /\ broker
       /\ IF isVoid THEN Set(n, [s EXCEPT !.phase = AfterFencing(s)])
          ELSE /\ Stable >= s.penAt
               /\ IF Has("signs with the first producer alone") THEN Set(n, [ended EXCEPT !.phase = "take second"])
                  ELSE IF isWaitOver THEN Set(n, holds)
                  ELSE Become(log, WaitingFor(n, holds), acked, read)
       /\ UNCHANGED <<owner, broker, left>>

(***************************************************************************)
(* Appending.                                                              *)
(***************************************************************************)
AskEnd(n) ==
    LET s == node[n] IN
    /\ s.phase = "decided" /\ HasPen(s) /\ broker
    /\ s.end < s.at \/ s.end = Unknown
    /\ Set(n, [s EXCEPT !.end = Stable])
    /\ UNCHANGED <<owner, broker, left>>

\* Nothing that a State must apply lies between what the decision has read and the end.
Allows(n, s) ==
    \/ Has("no compare of the end")
    \/ \A i \in (s.at + 1)..s.end \cap Offsets : \/ log[i].state = "void"
                                                 \/ i = s.end /\ i = s.penAt /\ log[i].kind = "signature" /\ log[i].by = n

Stage(n) ==
    LET s == node[n]
        landing == Len(log) + 1
        staged == Append(log, Record("write", n, s.turn, s.command, s.id, IF Has("no fencing") THEN "ok" ELSE "sent"))
        sent == [s EXCEPT !.phase = "sent", !.staged = landing, !.lease = IF @ = "asked" THEN "off" ELSE @,
                          !.begun = IF s.lease = "asked" THEN {} ELSE @]
    IN /\ s.phase = "decided" /\ HasPen(s) /\ s.end # Unknown /\ s.end >= s.at
       /\ ~IsWaiting(n) \/ Has("waits before the acknowledgement only")
       /\ IF ~Allows(n, s) THEN Set(n, [Unleased(s) EXCEPT !.phase = "sync"])
          ELSE IF ~broker THEN FALSE
          ELSE IF IsFenced(n, s.turn) THEN Set(n, [s EXCEPT !.pen = FALSE, !.phase = "await"])
          ELSE IF landing = s.end + 1 \/ Has("no compare of offsets") THEN Become(staged, With(n, sent), acked, read)
          ELSE IF Has("no fencing")  \* what was written stays, and the client gets an error
          THEN Become(staged, With(n, [Idle(s) EXCEPT !.end = Unknown]), acked, read)
          ELSE Set(n, [Unleased(s) EXCEPT !.end = Unknown, !.phase = "sync", !.turn = 3 - @])
       /\ UNCHANGED <<owner, broker, left>>

Suffices(i) ==
    \/ Has("acknowledges before the commit")
    \/ Has("acknowledges before it is visible") /\ log[i].state \in {"prepared", "ok"}
    \/ Stable >= i

\* The writer learns what became of its records; after a commit without an answer, once it has taken the pen again.
Committed(n) ==
    LET s == node[n]
        isThere == s.staged \in Offsets /\ log[s.staged].by = n /\ log[s.staged].command = s.command
        isVoid == ~isThere \/ log[s.staged].state = "void"
        applied == [Idle(s) EXCEPT !.at = Max(@, s.staged), !.end = IF s.phase = "sent" THEN s.staged ELSE @,
                                   !.turn = IF s.phase = "sent" THEN 3 - @ ELSE @]
        signed == Append(log, Record("signature", n, 1, NoCommand, 0, "ok"))
    IN /\ s.phase \in {"sent", "look"} /\ broker
       /\ IF isVoid THEN Set(n, [s EXCEPT !.phase = "await", !.staged = 0, !.pen = @ /\ s.phase = "look"])
          ELSE /\ Suffices(s.staged)
               /\ ~IsWaiting(n) \/ ~Has("waits before the acknowledgement only")
               /\ IF Has("signs after its first commit")
                  THEN Become(signed, With(n, [applied EXCEPT !.noted = n, !.notedAt = Len(signed), !.penAt = Len(signed),
                                                              !.end = Unknown]), Answered(s), read)
                  ELSE Become(log, With(n, applied), Answered(s), read)
       /\ UNCHANGED <<owner, broker, left>>

NoAnswerToCommit(n) ==
    LET s == [node[n] EXCEPT !.pen = FALSE, !.end = Unknown] IN
    /\ s.phase = "sent" /\ ~broker
    /\ Set(n, IF Has("does not settle a commit") THEN [s EXCEPT !.phase = "sync", !.staged = 0] ELSE [s EXCEPT !.phase = "settle"])
    /\ UNCHANGED <<owner, broker, left>>

\* A step took too long while the broker was away: the client gets an error, and tries again.
GiveUp(n) ==
    LET s == node[n] IN
    /\ s.up /\ ~broker /\ s.phase \notin {"idle", "sent"}
    /\ Set(n, [Idle(s) EXCEPT !.pen = @ /\ s.phase \in {"sync", "await"}, !.end = Unknown])
    /\ UNCHANGED <<owner, broker, left>>

\* A node reads the log at intervals, which matters where it shows a new signature.
Watch(n) ==
    /\ node[n].up /\ node[n].phase = "idle" /\ broker
    /\ Caught(node[n]).notedAt # node[n].notedAt
    /\ Set(n, Caught(node[n]))
    /\ UNCHANGED <<owner, broker, left>>

(***************************************************************************)
(* The broker. Without reads, nothing distinguishes "prepared" from "ok".  *)
(***************************************************************************)
Prepare(i) ==
    /\ broker /\ i \in Offsets /\ log[i].state = "sent"
    /\ Become([log EXCEPT ![i].state = IF Reading THEN "prepared" ELSE "ok"], node, acked, read)
    /\ UNCHANGED <<owner, broker, left>>

Complete(i) ==
    /\ broker /\ i \in Offsets /\ log[i].state = "prepared"
    /\ Become([log EXCEPT ![i].state = "ok"], node, acked, read)
    /\ UNCHANGED <<owner, broker, left>>

ComesBack ==
    /\ ~broker /\ broker' = TRUE
    /\ UNCHANGED <<log, base, owner, node, acked, read, left>>

(***************************************************************************)
(* The lease: the holder of the pen answers from memory for a time L after *)
(* it asked for the end of the log, if the answer was the end that it      *)
(* knows. A node that has taken the pen waits a little longer than L by    *)
(* its own clock. As long as no two clocks run apart by more than that     *)
(* little, a lease has run out at the end of each wait that began after    *)
(* its question, and that is all that is used of time: a lease ends at any *)
(* moment, and such a wait ends later. The leader answers the question in  *)
(* the moment when it is asked: a later answer would make it older only.   *)
(***************************************************************************)
MayLease(s) == HasPen(s) \/ Has("lease without the pen")

AskForLease(n) ==
    LET s == node[n] IN
    /\ Leases /\ Reading /\ broker /\ s.up /\ MayLease(s) /\ s.lease = "off" /\ s.phase \in {"idle", "decided"}
    /\ Caught(s) = s
    /\ Set(n, [s EXCEPT !.lease = "asked"])
    /\ UNCHANGED <<owner, broker, left>>

GetLease(n) ==
    LET s == node[n] IN
    /\ s.lease = "asked" /\ MayLease(s)
    /\ Set(n, [s EXCEPT !.lease = "on", !.begun = IF Has("lease from the receipt") THEN {} ELSE @])
    /\ UNCHANGED <<owner, broker, left>>

EndLease(n) ==
    /\ node[n].lease # "off"
    /\ Set(n, Unleased(node[n]))
    /\ UNCHANGED <<owner, broker, left>>

IsLeased(s) == s.lease = "on" /\ MayLease(s) /\ (s.phase # "sent" \/ Has("lease kept during a commit"))

(***************************************************************************)
(* Reads that must be fresh, one at a time, on any node.                   *)
(***************************************************************************)
NoRead == [at |-> None, must |-> {}, end |-> 0]
Acknowledged == UNION {{<<c, k>> : k \in (base[c] + 1)..acked[c]} : c \in Nodes}

BeginRead(n) ==
    /\ Reading /\ read.now.at = None /\ node[n].up
    /\ read' = [read EXCEPT !.now = [at |-> n, must |-> Acknowledged \cup read.seen,
                                     end |-> IF Has("reads join a read under way") THEN Stable ELSE 0]]
    /\ UNCHANGED <<log, base, owner, broker, node, acked, left>>

EndRead(n) ==
    LET must == IF Has("reads join a read under way") THEN Acknowledged \cup read.seen ELSE read.now.must
        Upto(end) == WritesAt({i \in 1..end : log[i].state # "void"})
        Return(answer) == read' = [read EXCEPT !.now = NoRead, !.seen = answer,
                                   !.isStale = ~(must \subseteq answer) \/ ~(answer \subseteq WritesAt(Durable))]
    IN /\ read.now.at = n
       /\ \/ broker /\ Return(Upto(IF Has("reads from memory") THEN node[n].at
                                   ELSE IF Has("reads join a read under way") THEN read.now.end
                                   ELSE IF Has("reads what is not committed") THEN Len(log) ELSE Stable))
          \/ IsLeased(node[n]) /\ Return(Upto(node[n].at))
       /\ UNCHANGED <<log, base, owner, broker, node, acked, left>>

(***************************************************************************)
(* Faults. Each kind happens a bounded number of times.                    *)
(***************************************************************************)
Use(fault) == left[fault] > 0 /\ left' = [left EXCEPT ![fault] = @ - 1]

Crash(n) ==
    /\ node[n].up /\ Use("crash")
    /\ Become(log,
              [m \in Nodes |-> IF m = n THEN [Fresh EXCEPT !.up = FALSE]
                               ELSE IF Client(node[m]) = n THEN [node[m] EXCEPT !.waits = FALSE] ELSE node[m]],
              acked,
              IF read.now.at = n THEN [read EXCEPT !.now = NoRead] ELSE read)
    /\ UNCHANGED <<owner, broker>>

Restart(n) ==
    /\ ~node[n].up /\ broker
    /\ Set(n, Caught(Fresh))
    /\ UNCHANGED <<owner, broker, left>>

Outage ==
    /\ broker /\ Use("outage") /\ broker' = FALSE
    /\ UNCHANGED <<log, base, owner, node, acked, read>>

\* The broker returns without its last second. A node that had read further reads from the start.
ComesBackWithLoss ==
    LET l == SubSeq(log, 1, Len(log) - 1)
        After(s) == LET again == [s EXCEPT !.at = 0]
                    IN IF s.at <= Len(l) THEN s
                       ELSE IF Has("lost signatures kept") \/ s.notedAt <= Len(l) THEN again
                       ELSE [again EXCEPT !.noted = None, !.notedAt = 0]
    IN /\ ~broker /\ Len(log) > 0 /\ Use("loss") /\ broker' = TRUE
       /\ Become(l, [n \in Nodes |-> After(node[n])], acked, read)
       /\ UNCHANGED owner

Cut(c) ==
    LET h == Holder(c, node[c]) IN
    /\ IsSending(c) /\ h # None /\ node[h].up /\ Use("cut") /\ Begin(c, c, h)
    /\ UNCHANGED <<owner, broker>>

Expire(i) ==
    /\ broker /\ i \in Offsets /\ log[i].state = "sent" /\ Use("expiry")
    /\ Become(Aborted(LAMBDA r : r.producer = log[i].producer), node, acked, read)
    /\ owner' = [owner EXCEPT ![log[i].producer] = None]
    /\ UNCHANGED broker

Foreign ==
    /\ broker /\ Use("foreign")
    /\ Become(Append(log, Record("foreign", None, 0, NoCommand, 0, "ok")), node, acked, read)
    /\ UNCHANGED <<owner, broker>>

Fault == Outage \/ ComesBackWithLoss \/ Foreign \/ (\E n \in Nodes : Crash(n) \/ Cut(n)) \/ (\E i \in Offsets : Expire(i))

(***************************************************************************)
(* The whole. Nothing makes a fault happen, a crashed node restart, a node *)
(* give up, or a node ask for a lease; everything else that stays possible *)
(* happens.                                                                *)
(***************************************************************************)
Run(n) == /\ node[n].up
          /\ \/ Submit(n) \/ Sync(n) \/ TakeFirst(n) \/ TakeSecond(n) \/ Signed(n)
             \/ AskEnd(n) \/ Stage(n) \/ Committed(n) \/ Watch(n)
Broker == ComesBack \/ \E i \in Offsets : Prepare(i) \/ Complete(i)

Init ==
    /\ log = <<>> /\ base = [n \in Nodes |-> 0] /\ owner = <<None, None>> /\ broker = TRUE
    /\ node = [n \in Nodes |-> Fresh] /\ acked = [n \in Nodes |-> 0]
    /\ read = [now |-> NoRead, seen |-> {}, isStale |-> FALSE]
    /\ left = [crash |-> Crashes, outage |-> Outages, loss |-> Losses, cut |-> Cuts, expiry |-> Expiries, foreign |-> Foreigns]

Next ==
    \/ \E n \in Nodes : \/ Run(n) \/ NoAnswerToCommit(n) \/ GiveUp(n) \/ Restart(n)
                        \/ AskForLease(n) \/ GetLease(n) \/ EndLease(n) \/ BeginRead(n) \/ EndRead(n)
    \/ Broker \/ Fault

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WF_vars(Broker) /\ \A n \in Nodes : WF_vars(Run(n)) /\ WF_vars(EndLease(n))
Symmetry == {p \in Permutations(Nodes) : {p[c] : c \in Clients} = Clients}

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
WritesSucceed == \A n \in Clients : <>[](acked[n] = Writes \/ ~node[n].up)
=============================================================================
