------------------------ MODULE AcknowledgedEnqueue ------------------------
(***************************************************************************)
(* Acknowledge only what is durable (rule 11): a primary with one          *)
(* synchronous standby, clients that repeat what was not answered, and a   *)
(* failover at any time.                                                   *)
(*                                                                         *)
(* A fact is written once, under a key: the job of a keyed enqueue, or the *)
(* result of a job, by its (job, token). Whoever has no answer repeats the *)
(* same request; the key keeps it from being written twice. The two kinds  *)
(* differ only in that a result needs its job.                             *)
(*                                                                         *)
(* A commit is local first: it is in the primary's WAL, and its session    *)
(* holds it, unseen and locked, while it waits for the standby. The wait   *)
(* ends when the standby has received it; but also when someone cancels it *)
(* or the primary restarts. Then others see it though no standby has it.   *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Keys, Clients,
    MaxWal,           \* Bounds what is explored: records in the WAL at once,
    MaxWrites,        \* facts written for the first time, in all,
    MaxFailovers,     \* and failovers.
    \* The two rules.
    CancelIsUnknown,  \* (a) A cancelled wait is no acknowledgement.
    RetryWrites       \* (b) A repeated request writes WAL before it is answered.

VARIABLES
    wal,        \* The primary's commits, in order.
    received,   \* How many of them the standby has; always the first ones.
    held,       \* Which of them are still waiting for the standby.
    client,     \* 0, or the place in the WAL on whose wait the client waits.
    written,    \* How many facts were written for the first time; gives ids.
    failovers,
    acked,      \* [fact, id] that some client was told is done.
    retried     \* Those that were acknowledged to a repeated request.

vars == <<wal, received, held, client, written, failovers, acked, retried>>

Facts == [kind: {"job", "result"}, key: Keys]
JobOf(f) == [f EXCEPT !.kind = "job"]
Places == 1 .. Len(wal)

\* Where a fact is seen by others: committed, and no longer held. A repeated
\* request writes a record too, by which the fact is seen no less.
Seen(f) == {i \in Places : wal[i].fact = f /\ i \notin held}

\* A session that still holds the fact keeps others from writing it.
Locked(f) == \E i \in held : wal[i].fact = f

Init ==
    /\ wal = <<>>
    /\ received = 0
    /\ held = {}
    /\ client = [c \in Clients |-> 0]
    /\ written = 0
    /\ failovers = 0
    /\ acked = {}
    /\ retried = {}

----------------------------------------------------------------------------
(* Clients.                                                                *)

\* Append a record and wait for the standby.
Commit(c, record) ==
    /\ Len(wal) < MaxWal
    /\ wal' = Append(wal, record)
    /\ held' = held \cup {Len(wal) + 1}
    /\ client' = [client EXCEPT ![c] = Len(wal) + 1]

Write(c, f) ==
    /\ client[c] = 0
    /\ ~Locked(f)
    /\ Seen(f) = {}
    /\ (f.kind = "result") => (Seen(JobOf(f)) # {})
    /\ written < MaxWrites
    /\ written' = written + 1
    /\ Commit(c, [fact |-> f, id |-> written + 1, again |-> FALSE])
    /\ UNCHANGED <<received, failovers, acked, retried>>

\* The fact is there. With rule (b) the row is touched, and its commit waits:
\* the standby, which receives in order, then has the first record too. Without
\* it (DO NOTHING, or a read-back) nothing is written, and no commit waits.
Repeat(c, f) ==
    /\ client[c] = 0
    /\ ~Locked(f)
    /\ \E i \in Seen(f) :
        /\ ~wal[i].again
        /\ IF RetryWrites
           THEN /\ Commit(c, [wal[i] EXCEPT !.again = TRUE])
                /\ UNCHANGED <<acked, retried>>
           ELSE /\ acked' = acked \cup {[fact |-> f, id |-> wal[i].id]}
                /\ retried' = retried \cup {wal[i].id}
                /\ UNCHANGED <<wal, held, client>>
    /\ UNCHANGED <<received, written, failovers>>

\* The deadline passes, or the network is cut: the client closes its socket and
\* knows nothing. The session at the server waits on.
GiveUp(c) ==
    /\ client[c] # 0
    /\ client' = [client EXCEPT ![c] = 0]
    /\ UNCHANGED <<wal, received, held, written, failovers, acked, retried>>

----------------------------------------------------------------------------
(* The servers.                                                            *)

\* The wait at place i is over; who waits on it is told success, or nothing.
WaitOver(i, success) ==
    LET hears == {c \in Clients : client[c] = i} IN
    /\ held' = held \ {i}
    /\ client' = [c \in Clients |-> IF c \in hears THEN 0 ELSE client[c]]
    /\ IF success /\ hears # {}
       THEN /\ acked' = acked \cup {[fact |-> wal[i].fact, id |-> wal[i].id]}
            /\ retried' = IF wal[i].again THEN retried \cup {wal[i].id} ELSE retried
       ELSE UNCHANGED <<acked, retried>>

Replicate ==
    /\ received < Len(wal)
    /\ received' = received + 1
    /\ UNCHANGED <<wal, held, client, written, failovers, acked, retried>>

Acknowledge(i) ==
    /\ i \in held /\ i <= received
    /\ WaitOver(i, TRUE)
    /\ UNCHANGED <<wal, received, written, failovers>>

\* The server answers with success and a warning.
CancelWait(i) ==
    /\ i \in held
    /\ WaitOver(i, ~CancelIsUnknown)
    /\ UNCHANGED <<wal, received, written, failovers>>

\* Every connection ends. After it, what was committed locally is seen.
Restart ==
    /\ held # {}
    /\ held' = {}
    /\ client' = [c \in Clients |-> 0]
    /\ UNCHANGED <<wal, received, written, failovers, acked, retried>>

\* The standby goes on with what it has; the next standby is made from it.
Failover ==
    /\ failovers < MaxFailovers
    /\ failovers' = failovers + 1
    /\ wal' = SubSeq(wal, 1, received)
    /\ held' = {}
    /\ client' = [c \in Clients |-> 0]
    /\ UNCHANGED <<received, written, acked, retried>>

Next ==
    \/ \E c \in Clients :
        \/ \E f \in Facts : Write(c, f) \/ Repeat(c, f)
        \/ GiveUp(c)
    \/ \E i \in 1 .. MaxWal : Acknowledge(i) \/ CancelWait(i)
    \/ Replicate \/ Restart \/ Failover

Spec == Init /\ [][Next]_vars

\* Clients differ in nothing but their names, and so do keys.
Alike == Permutations(Clients) \cup Permutations(Keys)

----------------------------------------------------------------------------
(* What must hold in every state.                                          *)

TypeOK ==
    /\ received \in 0 .. Len(wal)
    /\ held \subseteq Places
    /\ \A c \in Clients : client[c] = 0 \/ client[c] \in held

\* I1: what was acknowledged exists on the primary, under the id it was told.
NothingLost ==
    \A a \in acked : \E i \in Places : wal[i].fact = a.fact /\ wal[i].id = a.id

\* A key is written once; every further record of it is a repetition.
OncePerKey ==
    \A i, k \in Places : wal[i].fact = wal[k].fact => wal[i].id = wal[k].id

\* A result has its job, in front of it.
ResultsHaveJobs ==
    \A i \in Places : wal[i].fact.kind = "result" =>
        \E k \in 1 .. i : wal[k].fact = JobOf(wal[i].fact)

----------------------------------------------------------------------------
(* What must be possible. TLC prints the name of each when it first gets   *)
(* there; a model in which little can happen proves little.                *)

Behaviours == [
    \* A job and its result are acknowledged, and outlive a failover.
    AcknowledgedAndSurvived |-> failovers > 0 /\ \E a \in acked : a.fact.kind = "result",
    \* A failover erases a fact that nobody was told of, and it is written anew.
    WrittenAnew |-> written > Cardinality(Facts),
    \* Others see a fact that the standby lacks, because its wait was cut short.
    SeenTooEarly |-> \E i \in Places : i > received /\ i \notin held,
    \* A repeated request is acknowledged, and outlives a failover.
    RetriedAndSurvived |-> failovers > 0 /\ retried # {}]

ASSUME TLCSet(1, {})
Happens ==
    LET now == Behaviours
        new == {b \in DOMAIN now : now[b]} \ TLCGet(1)
    IN
    new = {} \/ (PrintT(<<"happens", new>>) /\ TLCSet(1, TLCGet(1) \cup new))
============================================================================
