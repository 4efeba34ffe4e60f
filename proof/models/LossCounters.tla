---------------------------- MODULE LossCounters ----------------------------
(***************************************************************************)
(* Three counters, one per kind of end (rule 8): which end of an attempt   *)
(* raises which counter, which job runs alone, and which job is failed.    *)
(*                                                                         *)
(* A worker is a parent, one child process that its jobs share, and a      *)
(* process of its own for each suspect. A pill kills the process that it   *)
(* runs in. A handler that holds its process until the parent kills it is  *)
(* a pill too. A bomb takes the whole worker. An innocent does neither.    *)
(*                                                                         *)
(* There is no time. A lease that ran out is a worker that is gone:        *)
(* killed, or cut off until others took its jobs. A worker that is gone is *)
(* back at once, without its jobs. Kills, outages and crashes have no      *)
(* bound: the caps alone make the states finite.                           *)
(*                                                                         *)
(* The database knows what is in the upper half of a job's record. The     *)
(* lower half is what happened. Guards use the upper half and, under a     *)
(* living parent, the phase, which is on the board; invariants use both.   *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    Jobs, Workers,
    Pills, Bombs,     \* Jobs that kill their process, or their whole worker.
    Movers,           \* Jobs that move a cursor; a pill may do so before it kills.
    Raisers,          \* Jobs whose handlers may raise.
    Once,             \* Jobs with on_loss="fail" and max_attempts=1.
    Parents,          \* FALSE: app.run() and HTTP workers, which have no parent.
    OwnProcesses,     \* How many suspects of a worker run at once.
    AloneFrom,        \* As many worker losses: a suspect needs a worker that holds nothing else.
    MaxAttempts, MaxLosses, MaxWorkerLosses, MaxDeaths,
    \* The rules that a variant may leave out.
    LossKeepsAttempt,    \* A loss does not charge the attempt.
    TwoLossCounters,     \* Only a death of the job's own process counts as its loss.
    UnknownNotCounted,   \* Lost at renewals = -1: only deaths is counted.
    RenewalMeansBegun,   \* A renewal of a job that waits leaves renewals at -1.
    ConfirmAfterDeath,   \* A job with deaths is confirmed before it starts.
    ConfirmOnce,         \* So is a job with on_loss="fail".
    LossFailsOnce,       \* Any end of its begun attempt but its own settle fails it.
    SharedSuspects,      \* The death of a shared process makes suspects at once.
    ReturnedCounts,      \* A process that dies after the handler returned counts too.
    SuspicionStays,      \* A moved cursor does not end suspicion.
    LateSuspectsAlone,   \* A suspect with AloneFrom worker losses is claimed when nothing else is held,
    BareSuspectsAlone,   \* and without a parent every suspect.
    HoldersFirst,        \* In an outage the holder gives back before others rescue.
    ProgressResets,      \* A moved cursor sets both loss counters to 0.
    DeathsStay           \* It never resets deaths.

VARIABLES
    job,    \* The jobs.
    wrong   \* What must never happen and is seen only in a step.

vars == <<job, wrong>>

Nobody == "nobody"
Final == {"completed", "failed"}
Innocents == Jobs \ (Pills \cup Bombs \cup Raisers \cup Once)
Attempts(j) == IF j \in Once THEN 1 ELSE MaxAttempts
Min(a, b) == IF a < b THEN a ELSE b

Record == [
    \* stopped: the holder lives, and ended the handler. orphan: the holder is gone.
    state: {"queued", "held", "stopped", "orphan"} \cup Final,
    reason: {"", "raised", "lost", "poison"},
    worker: Workers \cup {Nobody},
    known: BOOLEAN,                   \* renewals >= 0
    attempt: 0 .. MaxAttempts,        \* those charged
    losses: 0 .. MaxLosses,
    worker_losses: 0 .. MaxWorkerLosses,
    deaths: 0 .. MaxDeaths,
    suspect: BOOLEAN,
    \* What happened.
    phase: {"", "claimed", "confirmed", "begun", "returned"},
    alone: BOOLEAN,                   \* It runs in a process of its own.
    began: BOOLEAN,                   \* Of Once: its handler began in this life.
    took: BOOLEAN,                    \* It killed a shared process before.
    met: 0 .. MaxDeaths,              \* Known losses of its whole worker by no job's fault,
    hit: 0 .. MaxDeaths]              \* and losses by another job's; both since its last progress.

Fresh == [state |-> "queued", reason |-> "", worker |-> Nobody, known |-> FALSE, attempt |-> 0,
          losses |-> 0, worker_losses |-> 0, deaths |-> 0, suspect |-> FALSE, phase |-> "",
          alone |-> FALSE, began |-> FALSE, took |-> FALSE, met |-> 0, hit |-> 0]

Init ==
    /\ job = [j \in Jobs |-> Fresh]
    /\ wrong = {}

----------------------------------------------------------------------------
(* What becomes of a job.                                                  *)

\* Given back: no counter moves.
Back(r) == [r EXCEPT !.state = "queued", !.worker = Nobody, !.known = FALSE,
                     !.phase = "", !.alone = FALSE]

Failed(r, reason) == [Back(r) EXCEPT !.state = "failed", !.reason = reason]

\* What is over needs no counters: states that differ in nothing else are one.
Completed(r) == [Fresh EXCEPT !.state = "completed", !.suspect = r.suspect]

Begun(r) == r.phase \in {"begun", "returned"}

\* The end of an attempt by a loss: "own", "shared", "whole" or "unknown".
Lost(j, r, kind) ==
    LET own == kind = "own" \/ (kind # "unknown" /\ ~TwoLossCounters)
        other == kind \in {"shared", "whole"} /\ TwoLossCounters
        n == [r EXCEPT !.losses = IF own THEN @ + 1 ELSE @,
                       !.worker_losses = IF other THEN @ + 1 ELSE @,
                       !.deaths = @ + 1,
                       !.attempt = IF LossKeepsAttempt \/ kind = "unknown" THEN @ ELSE @ + 1]
        second == kind = "whole" /\ n.worker_losses >= 2
        seen == [n EXCEPT !.suspect = @ \/ second \/ (kind = "shared" /\ SharedSuspects)]
    IN
    IF j \in Once /\ LossFailsOnce /\ kind # "unknown" THEN Failed(n, "lost")
    ELSE IF \/ n.losses >= MaxLosses
            \/ n.worker_losses >= MaxWorkerLosses
            \/ n.deaths >= MaxDeaths
         THEN Failed(n, "poison")
    ELSE IF n.attempt >= Attempts(j) THEN Failed(n, "lost")
    ELSE Back(seen)

\* Given back by a holder that lives, which knows whether the job began.
Released(j, r) ==
    IF j \in Once /\ LossFailsOnce /\ Begun(r) THEN Failed(r, "lost") ELSE Back(r)

\* Of the guilty nobody asks what they met.
Met(j, r) == IF j \in Innocents THEN [r EXCEPT !.met = Min(@ + 1, MaxDeaths)] ELSE r
Hit(j, r) == IF j \in Innocents THEN [r EXCEPT !.hit = Min(@ + 1, MaxDeaths)] ELSE r

Counts(r) == <<r.losses, r.worker_losses, r.deaths, r.attempt>>
Flag(happened, name) == IF happened THEN {name} ELSE {}

----------------------------------------------------------------------------
(* The worker.                                                             *)

Held(w) == {j \in Jobs : job[j].state = "held" /\ job[j].worker = w}
Leased(w) == {j \in Jobs : job[j].state \in {"held", "stopped"} /\ job[j].worker = w}

\* Such a job is claimed by a worker that holds nothing else, and nothing else
\* is claimed beside it.
Solitary(r) ==
    \/ ~Parents /\ BareSuspectsAlone /\ r.suspect
    \/ LateSuspectsAlone /\ r.suspect /\ r.worker_losses >= AloneFrom

Fits(w, j) ==
    /\ Solitary(job[j]) => Leased(w) = {}
    /\ \A k \in Leased(w) : ~Solitary(job[k])

Claim(w, j) ==
    /\ job[j].state = "queued"
    /\ Fits(w, j)
    /\ job' = [job EXCEPT ![j] = [@ EXCEPT !.state = "held", !.phase = "claimed", !.worker = w]]
    /\ UNCHANGED wrong

MustConfirm(j) ==
    \/ j \in Once /\ ConfirmOnce
    \/ job[j].deaths > 0 /\ ConfirmAfterDeath

\* A suspect waits, claimed, until a process of its own is free.
Room(j) ==
    job[j].suspect =>
        Cardinality({k \in Held(job[j].worker) : /\ k # j /\ job[k].suspect
                                                 /\ job[k].phase # "claimed"}) < OwnProcesses

Confirm(j) ==
    /\ job[j].state = "held" /\ job[j].phase = "claimed"
    /\ MustConfirm(j) /\ Room(j)
    /\ job' = [job EXCEPT ![j] = [@ EXCEPT !.phase = "confirmed", !.known = TRUE]]
    /\ UNCHANGED wrong

Begin(j) ==
    /\ job[j].state = "held"
    /\ job[j].phase = IF MustConfirm(j) THEN "confirmed" ELSE "claimed"
    /\ Room(j)
    /\ job' = [job EXCEPT ![j] = [@ EXCEPT !.phase = "begun", !.alone = @ \/ job[j].suspect,
                                           !.began = j \in Once]]
    /\ wrong' = wrong \cup Flag(job[j].began, "begun twice")

\* Only what it tells is modelled: that the job began.
Renew(j) ==
    /\ job[j].state = "held" /\ ~job[j].known
    /\ job[j].phase = "begun" \/ (job[j].phase = "claimed" /\ ~RenewalMeansBegun)
    /\ job' = [job EXCEPT ![j].known = TRUE]
    /\ UNCHANGED wrong

Move(j) ==
    /\ j \in Movers
    /\ job[j].state = "held" /\ job[j].phase = "begun"
    /\ job' = [job EXCEPT ![j] =
        [@ EXCEPT !.losses = IF ProgressResets THEN 0 ELSE @,
                  !.worker_losses = IF ProgressResets THEN 0 ELSE @,
                  !.deaths = IF DeathsStay THEN @ ELSE 0,
                  !.suspect = @ /\ SuspicionStays,
                  !.met = 0, !.hit = 0]]
    /\ UNCHANGED wrong

\* The handler has returned. Its result is not settled yet.
Return(j) ==
    /\ job[j].state = "held" /\ job[j].phase = "begun"
    /\ job' = [job EXCEPT ![j].phase = "returned"]
    /\ UNCHANGED wrong

\* Raised, or timed out: the one end that charges the attempt.
Raise(j) ==
    /\ j \in Raisers
    /\ job[j].state = "held" /\ job[j].phase = "begun"
    /\ LET n == [job[j] EXCEPT !.attempt = @ + 1] IN
       job' = [job EXCEPT ![j] = IF n.attempt >= Attempts(j) THEN Failed(n, "raised") ELSE Back(n)]
    /\ UNCHANGED wrong

Complete(j) ==
    /\ job[j].state = "held" /\ job[j].phase = "returned"
    /\ job' = [job EXCEPT ![j] = Completed(@)]
    /\ UNCHANGED wrong

----------------------------------------------------------------------------
(* Crashes, and what the parent makes of them.                             *)

\* Does the end of its process count for a job with this record?
Answers(r) == r.phase = "begun" \/ (r.phase = "returned" /\ ReturnedCounts)

\* The shared process dies. With it end the processes of suspects, which its
\* parent gives back, as it does what had not begun.
CrashShared(j) ==
    LET w == job[j].worker
        after(k) ==
            LET r == job[k]
                n == [r EXCEPT !.took = @ \/ k = j]
            IN IF Answers(r) /\ ~r.alone THEN Lost(k, Hit(k, n), "shared") ELSE Released(k, n)
    IN
    /\ Parents
    /\ j \in Pills
    /\ job[j].state = "held" /\ Begun(job[j]) /\ ~job[j].alone
    /\ job' = [k \in Jobs |-> IF k \in Held(w) THEN after(k) ELSE job[k]]
    /\ wrong' = wrong \cup Flag(job[j].took, "took a second process")
                      \cup Flag(Counts(job'[j]) = Counts(job[j]), "not counted")

CrashOwn(j) ==
    /\ Parents
    /\ j \in Pills
    /\ job[j].state = "held" /\ Begun(job[j]) /\ job[j].alone
    /\ job' = [job EXCEPT ![j] = IF Answers(@) THEN Lost(j, @, "own") ELSE Released(j, @)]
    /\ wrong' = wrong \cup Flag(Counts(job'[j]) = Counts(job[j]), "not counted")

\* A whole worker is gone: by job j, or by nobody. The parent goes with it, so
\* the leases run out.
Gone(w, j) ==
    LET orphan(r) == [r EXCEPT !.state = "orphan", !.worker = Nobody, !.alone = FALSE]
        after(k) ==
            LET r == job[k] IN
            IF k \notin Leased(w) THEN r
            ELSE IF r.phase = "claimed" \/ ~r.known THEN orphan(r)
            ELSE IF j = Nobody THEN Met(k, orphan(r))
            ELSE Hit(k, orphan(r))
    IN
    /\ job' = [k \in Jobs |-> after(k)]
    /\ UNCHANGED wrong

Kill(w) ==
    /\ Leased(w) # {}
    /\ Gone(w, Nobody)

Explode(j) ==
    /\ j \in Bombs \/ (j \in Pills /\ ~Parents)
    /\ job[j].state = "held" /\ Begun(job[j])
    /\ Gone(job[j].worker, j)

\* Anyone may. The row tells no more than whether the claim was confirmed or
\* renewed. Without HoldersFirst another's sweep overtakes a living holder.
Rescue(j) ==
    LET r == job[j]
        kind == IF r.known \/ ~UnknownNotCounted THEN "whole" ELSE "unknown"
    IN
    /\ r.state = "orphan" \/ (r.state = "stopped" /\ ~HoldersFirst)
    /\ job' = [job EXCEPT ![j] = Lost(j, r, kind)]
    /\ wrong' = wrong \cup Flag(kind = "whole" /\ r.phase = "claimed", "counted before it began")
                      \cup Flag(kind = "unknown" /\ Begun(r) /\ r.deaths > 0, "unknown again")

----------------------------------------------------------------------------
(* Outages, drains and recycling: the holder lives and gives back.         *)

\* A returned handler's result is sent again until it is settled.
Stop(w) ==
    LET those == {j \in Held(w) : job[j].phase # "returned"} IN
    /\ those # {}
    /\ job' = [j \in Jobs |-> IF j \in those THEN [job[j] EXCEPT !.state = "stopped"] ELSE job[j]]
    /\ UNCHANGED wrong

GiveBack(j) ==
    /\ job[j].state = "stopped"
    /\ job' = [job EXCEPT ![j] = Released(j, @)]
    /\ UNCHANGED wrong

----------------------------------------------------------------------------
Serve(j) ==
    \/ \E w \in Workers : Claim(w, j)
    \/ Confirm(j) \/ Begin(j) \/ Return(j) \/ Complete(j) \/ Rescue(j) \/ GiveBack(j)

Next ==
    \/ \E j \in Jobs :
        \/ \E w \in Workers : Claim(w, j)
        \/ Confirm(j) \/ Begin(j) \/ Renew(j) \/ Move(j) \/ Return(j) \/ Raise(j) \/ Complete(j)
        \/ CrashShared(j) \/ CrashOwn(j) \/ Explode(j) \/ Rescue(j) \/ GiveBack(j)
    \/ \E w \in Workers : Kill(w) \/ Stop(w)

Spec == Init /\ [][Next]_vars /\ \A j \in Jobs : WF_vars(Serve(j))

\* Workers differ in nothing but their names.
Alike == Permutations(Workers)

----------------------------------------------------------------------------
(* What must hold in every state.                                          *)

TypeOK == job \in [Jobs -> Record]

\* No innocent is failed unless as many whole workers as the cap went under it
\* since its last progress, or as many deaths in its life. Of pills it pays for
\* one crash, without a parent for two. Of bombs it pays for all.
NoInnocentFails ==
    LET most == IF Bombs # {} THEN MaxDeaths ELSE IF Parents THEN 1 ELSE 2 IN
    \A j \in Innocents : job[j].state = "failed" =>
        \/ job[j].met + Min(job[j].hit, most) >= MaxWorkerLosses
        \/ job[j].deaths >= MaxDeaths

\* Bombs alone fail no innocent. This needs LateSuspectsAlone.
BombsFailNoInnocent ==
    \A j \in Innocents : job[j].state = "failed" => job[j].met > 0 \/ job[j].deaths >= MaxDeaths

\* on_loss="fail" with max_attempts=1.
BeginsOnce == "begun twice" \notin wrong

\* I9: a job is at a cap exactly when that has ended it.
CapsHold ==
    \A j \in Jobs :
        LET r == job[j]
            at == \/ r.losses >= MaxLosses \/ r.worker_losses >= MaxWorkerLosses
                  \/ r.deaths >= MaxDeaths
        IN
        /\ at => r.state = "failed"
        /\ r.reason = "poison" => at
        /\ r.attempt >= Attempts(j) => r.state = "failed"

\* A loss counter rises only for what had begun, or had said that it would.
OnlyBegunCounted == "counted before it began" \notin wrong

\* Termination, step by step: a pill's crash raises a counter.
EveryCrashCounts == "not counted" \notin wrong

\* After one unknown loss, each further one is known.
UnknownOnce == "unknown again" \notin wrong

\* A pill takes one shared process with it and no second one.
OneSharedCrash == "took a second process" \notin wrong

\* Termination as a whole, under kills and crashes without end: every job ends,
\* unless outages never cease.
EveryJobEnds ==
    \/ []<><<\E w \in Workers : Stop(w)>>_vars
    \/ <>(\A j \in Jobs : job[j].state \in Final)

----------------------------------------------------------------------------
(* What must be possible. TLC prints the name of each when it first gets   *)
(* there; a model in which little can happen proves little.                *)

Behaviours == [
    \* A pill is found out alone, by the deaths of its own process.
    PillFound |-> \E j \in Pills : job[j].losses = MaxLosses,
    \* A pill that moves its cursor each time, or a bomb, ends by its deaths.
    EndedByDeaths |-> \E j \in Pills \cup Bombs : job[j].deaths = MaxDeaths,
    \* A bomb, or a pill whose worker is killed by others, ends by its worker losses.
    WorkerLossesEndIt |-> \E j \in Pills \cup Bombs : job[j].worker_losses = MaxWorkerLosses,
    \* An innocent completes after a neighbor's crash, in a process of its own.
    CompletedAlone |-> \E j \in Innocents : job[j].state = "completed" /\ job[j].suspect,
    \* So many machines go under an innocent that it is failed.
    InnocentAtCap |-> \E j \in Innocents : job[j].state = "failed",
    \* A suspect waits for the process that another one has.
    SuspectWaits |-> \E j \in Jobs : job[j].state = "held" /\ ~Room(j),
    \* A job that may begin once is lost unbegun, and is queued again.
    OnceQueuedAgain |-> \E j \in Once : job[j].state = "queued" /\ job[j].deaths > 0,
    \* It is lost after it began, and is failed.
    OnceLost |-> \E j \in Once : job[j].reason = "lost",
    \* A handler raises until its attempts are used up.
    Raised |-> \E j \in Jobs : job[j].reason = "raised"]

ASSUME TLCSet(1, {})
Happens ==
    LET now == Behaviours
        new == {b \in DOMAIN now : now[b]} \ TLCGet(1)
    IN
    new = {} \/ (PrintT(<<"happens", new>>) /\ TLCSet(1, TLCGet(1) \cup new))
============================================================================
