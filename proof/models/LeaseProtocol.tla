--------------------------- MODULE LeaseProtocol ---------------------------
(***************************************************************************)
(* The lease protocol: who may run a job, and whose result is accepted.    *)
(*                                                                         *)
(* Time is what is left of a lease, not a date, so that it may pass for    *)
(* ever: Tick takes one from everything that is left. There is one clock,  *)
(* the database's; workers count at its rate.                              *)
(*                                                                         *)
(* A running period is one claim of one job. Every period has a serial     *)
(* number here that the real system lacks; it knows (id, token, worker).   *)
(* Guards use what the real system has, invariants use the serial number.  *)
(* So the invariants say whether those three name one period.              *)
(*                                                                         *)
(* Pauses and delays have no action of their own. A worker that takes no   *)
(* step is paused, or dead. Whatever the worker of a period may ever send, *)
(* renewals, progress, results, effects, may arrive at any later time, any *)
(* number of times, in any order, or never: it was long in flight, sent    *)
(* again, or sent by a sleeper that woke up and believed in its lease. A   *)
(* child's result may be in flight while its parent, which saw it die,     *)
(* releases the same lease.                                                *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Jobs, Workers,
    Lease,             \* How many ticks a claim or a renewal grants.
    Base,              \* Where a timeline's tokens begin: 2^40 in the real system.
    MaxPeriods,        \* Bounds what is explored: all claims together,
    MaxTimeline,       \* and one failover less than this.
    MaxLosses,
    \* The rules that a variant may leave out.
    FenceOn,           \* Rule 1: writes name the whole lease, not id and state.
    TimelineInToken,   \* Names: a claim's token is at least timeline * Base.
    GuardRenewByTime,  \* Rule 2: a renewal needs an unexpired lease.
    RescueRechecks,    \* Rule 9: expiry is checked again when the token is raised.
    AnchorAtSend       \* Rule 6: trust counts from when the request was sent.

ASSUME Base > 2 * MaxPeriods  \* A timeline does not run out of tokens.

VARIABLES
    row,       \* The job rows of the primary. `period` is the serial number.
    attempts,  \* Its attempt rows: how each running period ended (rule 4).
    standby,   \* What of both the standby has: the state at some earlier commit.
    timeline,  \* Raised by each failover.
    periods,   \* Every claim that ever was, and how far its worker trusts it.
    seen,      \* Expired leases that a sweeper saw, if it does not check again.
    outside,   \* A store elsewhere, per job: the greatest fence that it met.
    told,      \* Periods whose worker was told that its result is accepted.
    stale,     \* A write was applied to a period other than its own.
    overtaken  \* Outside, an effect was applied after one of a later period.

vars == <<row, attempts, standby, timeline, periods, seen, outside, told, stale, overtaken>>

Nobody == "nobody"
Final == {"completed", "cancelled", "failed"}
Serials == 0 .. MaxPeriods
Tokens == 0 .. (MaxTimeline + 1) * Base
Max(a, b) == IF a > b THEN a ELSE b
OneLess(n) == Max(n - 1, 0)

Row == [state: {"queued", "running"} \cup Final, token: Tokens, holder: Workers \cup {Nobody},
        period: Serials, left: 0 .. Lease, cancel: BOOLEAN]
Attempt == [token: Tokens, worker: Workers, period: Serials,
            outcome: {"completed", "released", "lost", "revoked"}]

Init ==
    /\ row = [j \in Jobs |-> [state |-> "queued", token |-> 0, holder |-> Nobody,
                              period |-> 0, left |-> 0, cancel |-> FALSE]]
    /\ attempts = [j \in Jobs |-> {}]
    /\ standby = [row |-> row, attempts |-> attempts]
    /\ timeline = 1
    /\ periods = <<>>
    /\ seen = {}
    /\ outside = [j \in Jobs |-> [fence |-> 0, period |-> 0]]
    /\ told = {}
    /\ stale = FALSE
    /\ overtaken = FALSE

----------------------------------------------------------------------------
(* What a row becomes, and what is left behind.                            *)

Ended(r, state) == [r EXCEPT !.state = state, !.holder = Nobody, !.left = 0]

\* "+1 at every forced end of a running period."
ForcedEnd(r, state) == [Ended(r, state) EXCEPT !.token = r.token + 1]

AttemptOf(r, p, outcome) == [token |-> r.token, worker |-> r.holder, period |-> p,
                             outcome |-> outcome]

Losses(j) == Cardinality({a \in attempts[j] : a.outcome = "lost"})

\* Does the row still hold the lease that the writer of period p names?
Holds(p) ==
    LET j == periods[p].job IN
    IF FenceOn
    THEN row[j].token = periods[p].token /\ row[j].holder = periods[p].worker
    ELSE row[j].state = "running"

\* A write of period p is applied to the row as it is now.
Applied(p) == stale' = (stale \/ row[periods[p].job].period # p)

----------------------------------------------------------------------------
(* The database's statements, each one transaction.                        *)

\* The answer comes at once, which is the most that a worker can trust: one
\* that comes later, or never, grants less, because trust counts from sending.
Claim(w, j) ==
    LET fresh == row[j].token + 1
        token == IF TimelineInToken THEN Max(fresh, timeline * Base) ELSE fresh
        p == Len(periods) + 1
    IN
    /\ row[j].state = "queued"
    /\ p <= MaxPeriods
    /\ row' = [row EXCEPT ![j] = [@ EXCEPT !.state = "running", !.token = token, !.holder = w,
                                           !.period = p, !.left = Lease]]
    /\ periods' = Append(periods, [job |-> j, token |-> token, worker |-> w,
                                   trust |-> Lease, line |-> timeline])
    /\ UNCHANGED <<attempts, standby, timeline, seen, outside, told, stale, overtaken>>

Renewable(p) ==
    /\ Holds(p)
    /\ GuardRenewByTime => row[periods[p].job].left > 0

\* A worker whose handler has ended (trust 0 for good, see Settled) does not
\* begin to trust again when a renewal of before is answered.
Renew(p) ==
    /\ p \in DOMAIN periods
    /\ Renewable(p)
    /\ row' = [row EXCEPT ![periods[p].job].left = Lease]
    /\ periods' = [periods EXCEPT ![p] = IF @.line = 0 THEN @
                                         ELSE [@ EXCEPT !.trust = Lease, !.line = timeline]]
    /\ Applied(p)
    /\ UNCHANGED <<attempts, standby, timeline, seen, outside, told, overtaken>>

\* Progress changes nothing that is modelled; it must only not be stale.
Progress(p) ==
    /\ p \in DOMAIN periods
    /\ Renewable(p)
    /\ Applied(p)
    /\ UNCHANGED <<row, attempts, standby, timeline, periods, seen, outside, told, overtaken>>

\* The handler had ended before the settle was sent. Line 0 marks it.
Settled(p) == periods' = [periods EXCEPT ![p].trust = 0, ![p].line = 0]

\* Needs the lease's name only; a late result is accepted (rule 2), also when
\* a cancel was asked for (rule 15). Its answer is lost: the worker asks again.
Complete(p) ==
    LET j == periods[p].job IN
    /\ p \in DOMAIN periods
    /\ Holds(p)
    /\ attempts' = [attempts EXCEPT ![j] = @ \cup {AttemptOf(row[j], p, "completed")}]
    /\ row' = [row EXCEPT ![j] = Ended(@, "completed")]
    /\ Applied(p)
    /\ Settled(p)
    /\ UNCHANGED <<standby, timeline, seen, outside, told, overtaken>>

\* Release, snooze, or a failure that is tried again: back to the queue.
Release(p) ==
    LET j == periods[p].job IN
    /\ p \in DOMAIN periods
    /\ Holds(p)
    /\ attempts' = [attempts EXCEPT ![j] = @ \cup {AttemptOf(row[j], p, "released")}]
    /\ row' = [row EXCEPT ![j] = Ended(@, IF @.cancel THEN "cancelled" ELSE "queued")]
    /\ Applied(p)
    /\ Settled(p)
    /\ UNCHANGED <<standby, timeline, seen, outside, told, overtaken>>

\* A settle finds no row with its lease: stale, or settled before. The attempt row
\* of its (job, token) and worker says how the period ended (rule 4).
SettleAgain(p) ==
    LET mine == {a \in attempts[periods[p].job] :
                    a.token = periods[p].token /\ a.worker = periods[p].worker} IN
    /\ p \in DOMAIN periods
    /\ ~Holds(p)
    /\ told' = IF \E a \in mine : a.outcome = "completed" THEN told \cup {p} ELSE told
    /\ Settled(p)
    /\ UNCHANGED <<row, attempts, standby, timeline, seen, outside, stale, overtaken>>

\* Only where the variant leaves the second check out: a sweeper reads first.
See(j) ==
    /\ ~RescueRechecks
    /\ row[j].state = "running" /\ row[j].left = 0
    /\ seen' = seen \cup {<<j, row[j].token>>}
    /\ UNCHANGED <<row, attempts, standby, timeline, periods, outside, told, stale, overtaken>>

\* Anyone may (rule 9). The loss is counted here (rule 8).
Rescue(j) ==
    /\ row[j].state = "running"
    /\ IF RescueRechecks THEN row[j].left = 0 ELSE <<j, row[j].token>> \in seen
    /\ attempts' = [attempts EXCEPT ![j] = @ \cup {AttemptOf(row[j], row[j].period, "lost")}]
    /\ row' = [row EXCEPT ![j] = ForcedEnd(@, IF @.cancel THEN "cancelled"
                                              ELSE IF Losses(j) + 1 >= MaxLosses THEN "failed"
                                              ELSE "queued")]
    /\ UNCHANGED <<standby, timeline, periods, seen, outside, told, stale, overtaken>>

\* Queued: ended at once. Running: asked for, and every end but a completion
\* then ends as cancelled (rule 15).
Cancel(j) ==
    /\ \/ /\ row[j].state = "queued"
          /\ row' = [row EXCEPT ![j] = [@ EXCEPT !.state = "cancelled", !.cancel = TRUE]]
       \/ /\ row[j].state = "running" /\ ~row[j].cancel
          /\ row' = [row EXCEPT ![j].cancel = TRUE]
    /\ UNCHANGED <<attempts, standby, timeline, periods, seen, outside, told, stale, overtaken>>

Revoke(j) ==
    /\ row[j].state = "running"
    /\ attempts' = [attempts EXCEPT ![j] = @ \cup {AttemptOf(row[j], row[j].period, "revoked")}]
    /\ row' = [row EXCEPT ![j] = [ForcedEnd(@, "cancelled") EXCEPT !.cancel = TRUE]]
    /\ UNCHANGED <<standby, timeline, periods, seen, outside, told, stale, overtaken>>

----------------------------------------------------------------------------
(* The world around.                                                       *)

\* An effect that is not in the job's transaction reaches a store elsewhere,
\* which refuses a fence below the greatest that it met.
Effect(p) ==
    LET j == periods[p].job IN
    /\ p \in DOMAIN periods
    /\ periods[p].token >= outside[j].fence
    /\ outside' = [outside EXCEPT ![j] = [fence |-> periods[p].token, period |-> p]]
    /\ overtaken' = (overtaken \/ p < outside[j].period)
    /\ UNCHANGED <<row, attempts, standby, timeline, periods, seen, told, stale>>

\* Only where the variant counts trust from the answer, which may be late.
LateAnswer(p) ==
    /\ p \in DOMAIN periods
    /\ ~AnchorAtSend
    /\ periods[p].line # 0
    /\ periods' = [periods EXCEPT ![p].trust = Lease]
    /\ UNCHANGED <<row, attempts, standby, timeline, seen, outside, told, stale, overtaken>>

Tick ==
    LET older(rows) == [j \in Jobs |-> [rows[j] EXCEPT !.left = OneLess(@)]]
        \* Which timeline granted it is forgotten with the last of the trust:
        \* states that differ in nothing else are one.
        spent(q) == [q EXCEPT !.trust = OneLess(@),
                              !.line = IF q.trust <= 1 /\ @ # 0 THEN 1 ELSE @]
    IN
    /\ row' = older(row)
    /\ standby' = [standby EXCEPT !.row = older(@)]
    /\ periods' = [p \in DOMAIN periods |-> spent(periods[p])]
    /\ UNCHANGED <<attempts, timeline, seen, outside, told, stale, overtaken>>

\* The standby catches up, whenever it does.
Replicate ==
    /\ standby' = [row |-> row, attempts |-> attempts]
    /\ UNCHANGED <<row, attempts, timeline, periods, seen, outside, told, stale, overtaken>>

\* The primary is gone for good, and with it what the standby did not have.
\* What was told of commits that are lost is lost with them.
Failover ==
    /\ timeline < MaxTimeline
    /\ timeline' = timeline + 1
    /\ row' = standby.row
    /\ attempts' = standby.attempts
    /\ told' = {p \in told : \E a \in standby.attempts[periods[p].job] :
                                a.period = p /\ a.outcome = "completed"}
    /\ UNCHANGED <<standby, periods, seen, outside, stale, overtaken>>

Next ==
    \/ \E j \in Jobs :
        \/ \E w \in Workers : Claim(w, j)
        \/ See(j) \/ Rescue(j) \/ Cancel(j) \/ Revoke(j)
    \/ \E p \in 1 .. MaxPeriods :
        \/ Renew(p) \/ Progress(p) \/ Complete(p) \/ Release(p) \/ SettleAgain(p)
        \/ Effect(p) \/ LateAnswer(p)
    \/ Tick \/ Replicate \/ Failover

Spec == Init /\ [][Next]_vars

\* Workers differ in nothing but their names.
Alike == Permutations(Workers)

----------------------------------------------------------------------------
(* What must hold in every state.                                          *)

TypeOK ==
    /\ row \in [Jobs -> Row]
    /\ \A j \in Jobs : attempts[j] \subseteq Attempt
    /\ timeline \in 1 .. MaxTimeline
    /\ told \subseteq DOMAIN periods

\* I2: at most one accepted result, and it comes from the last holder. After a
\* failover: of the jobs, results and holders that the survivor knows.
OneResult ==
    \A j \in Jobs :
        LET accepted == {a \in attempts[j] : a.outcome = "completed"} IN
        /\ Cardinality(accepted) <= 1
        /\ (row[j].state = "completed") <=> (accepted # {})
        /\ \A a \in accepted : a.period = row[j].period /\ a.token = row[j].token

\* I3, in the database: no write of a period is ever applied to another.
NoStaleWrite == ~stale

Trusts(p) == periods[p].trust > 0 /\ periods[p].line = timeline

\* I3, among workers that heed their local deadline. Trust of before a failover
\* that loses commits is void; that is what the fence is for.
OneBeliever ==
    \A p, q \in DOMAIN periods :
        (p # q /\ periods[p].job = periods[q].job) => ~(Trusts(p) /\ Trusts(q))

\* I5: who heeds the local deadline has stopped before the lease ends. A revoke
\* ends the lease before its time, and the job with it.
StopsInTime ==
    \A p \in DOMAIN periods :
        LET r == row[periods[p].job] IN
        Trusts(p) => \/ r.state = "running" /\ r.period = p /\ r.left >= periods[p].trust
                     \/ r.state = "cancelled"

\* I8: tokens only grow, from claim to claim, also across a failover. So no
\* fence is handed out twice.
FencesGrow ==
    \A p, q \in DOMAIN periods :
        (p < q /\ periods[p].job = periods[q].job) => periods[p].token < periods[q].token

\* What the fence is for: after an effect of a later period, none of an earlier.
OutsideInOrder == ~overtaken

\* Rule 4: who was told that its result is accepted, has its result accepted.
AnswersAreTrue ==
    \A p \in told : \E a \in attempts[periods[p].job] : a.period = p /\ a.outcome = "completed"

\* Every running period ends once: one attempt row for each (job, token).
OneEnd ==
    \A j \in Jobs : \A a, b \in attempts[j] : a.token = b.token => a = b

\* Rule 15: what was asked to be cancelled never goes back to the queue.
CancelSticks == \A j \in Jobs : row[j].cancel => row[j].state # "queued"

\* I9, of losses: the cap ends the job.
CapHolds == \A j \in Jobs : Losses(j) <= MaxLosses /\ (Losses(j) = MaxLosses => row[j].state \in Final)

----------------------------------------------------------------------------
(* What must be possible. TLC prints the name of each when it first gets   *)
(* there; a model in which little can happen proves little.                *)

Outcomes(j) == {a.outcome : a \in attempts[j]}

Behaviours == [
    \* A second holder completes the job, after the first one was lost.
    CompletedAfterRescue |->
        \E j \in Jobs : row[j].state = "completed" /\ "lost" \in Outcomes(j),
    \* A result is accepted after a failover, of a period of before it.
    CompletedAcrossFailover |->
        timeline > 1 /\ \E j \in Jobs : row[j].state = "completed" /\ row[j].token < timeline * Base,
    \* A failover forgets a claim, and two workers believe in their leases at once.
    TwoBelieve |->
        \E p, q \in DOMAIN periods : /\ p < q /\ periods[p].job = periods[q].job
                                     /\ periods[p].trust > 0 /\ periods[q].trust > 0,
    \* A failover brings back a job that had ended, and the outside met it before.
    ForgottenByFailover |->
        \E j \in Jobs : row[j].state = "queued" /\ outside[j].fence > row[j].token,
    \* A settle that comes again is answered from the attempt row.
    ToldAgain |-> told # {},
    \* A job that its handler gave back ends as cancelled.
    CancelledOnRelease |->
        \E j \in Jobs : row[j].state = "cancelled" /\ "released" \in Outcomes(j),
    \* A job meets its cap of losses.
    Poison |-> \E j \in Jobs : row[j].state = "failed"]

ASSUME TLCSet(1, {})
Happens ==
    LET now == Behaviours
        new == {b \in DOMAIN now : now[b]} \ TLCGet(1)
    IN
    new = {} \/ (PrintT(<<"happens", new>>) /\ TLCSet(1, TLCGet(1) \cup new))
============================================================================
