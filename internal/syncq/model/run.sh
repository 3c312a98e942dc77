#!/usr/bin/env bash
# run.sh [-all] [WORD...]: checks the models of this folder and prints a table. Every configuration
# must hold, and every mutant must break a property. With -all it checks the larger configurations
# too; with words it checks only the lines that contain each of them. Needs spin and gcc.
set -euo pipefail
cd "$(dirname "$0")"

# Each line is a file and its switches. NonFair is the absence of FIFO, except in foreign.pml.
small='
queue.pml   FIFO
queue.pml   FIFO LIMIT
queue.pml   FIFO SHARE LIMIT
queue.pml   FIFO SHARE RWMUTEX
queue.pml   FIFO COND
queue.pml   FIFO ANONYMOUS LIMIT
queue.pml   FIFO REFUSE
queue.pml   LIMIT
queue.pml   SHARE
queue.pml   SHARE RWMUTEX
queue.pml   SHARE LIMIT N=2
queue.pml   SHARE REFUSE N=2
queue.pml   SHARE LIMIT LOSSES=2 N=2
queue.pml   COND ONCE
queue.pml   ANONYMOUS
queue.pml   FIFO COND ANONYMOUS ONCE
queue.pml   COND ANONYMOUS ONCE
queue.pml   REFUSE
queue.pml   LOSSES=2 LIMIT
tally.pml
tally.pml   LIMIT STRANGER N=2
tally.pml   STRANGER ONCE
foreign.pml
foreign.pml PANICS STRANGER ONCE
foreign.pml PANICS STRANGER N=2
bias.pml    FIFO R0=READS R1=WRITES R2=WRITES+DOWNGRADES
bias.pml    FIFO SLOTS=1
bias.pml    FIFO R0=READS R1=IN_WORD+UPGRADES R2=WRITES
bias.pml    R0=READS R1=READS R2=WRITES
bias.pml    N=2 R0=READS+WRITES+UPGRADES+DOWNGRADES+TIMED R1=READS+WRITES+UPGRADES+DOWNGRADES+TIMED
owners.pml  FIFO LIMIT
owners.pml  FIFO SHARE
owners.pml  FIFO COND ONCE
owners.pml  FIFO SHARE STAYS ONCE
owners.pml
owners.pml  SHARE STAYS ONCE
stamped.pml
stamped.pml CONVERT OPTIMISTIC LIMIT N=2
stamped.pml LIMIT WRITES=1 ONCE
stamped.pml MAXOVERFLOW=0
stamped.pml BIASES=2 N=2
stamped.pml LIMIT WRITES=4 N=2
stamped.pml BIASES=2 SLOTS=1 N=2 CONVERT
stamped.pml BIASES=1 WRITES=1 ONCE
mcs.pml
mcs.pml     LIMIT ONCE
mcs.pml     ANYBODY LIMIT ONCE
ticket.pml  LIMIT
ticket.pml  ANYBODY LIMIT
cycles.pml
cycles.pml  LIMIT
cycles.pml  LIMIT N=2 L=2 ROUNDS=2
readers.pml FIRST=1
readers.pml LIMIT N=2
rules.pml   FIFO
rules.pml   FIFO LIMIT
rules.pml   FIFO REFUSE
rules.pml
rules.pml   LIMIT ONCE
rules.pml   REFUSE ONCE
rules.pml   FIFO REFUSE LIMIT ONCE
rules.pml   FIFO LATCH LIMIT ONCE
rules.pml   LATCH ONCE
park.pml
keyed.pml   LIMIT ROUNDS=1
keyed.pml   OWNERS LIMIT N=2
'

large='
queue.pml   FIFO N=4
queue.pml   FIFO SHARE LIMIT N=4 ONCE
queue.pml   FIFO SHARE LIMIT RWMUTEX
queue.pml   FIFO COND SHARE
queue.pml   FIFO REFUSE LIMIT
queue.pml   N=4 ONCE
queue.pml   SHARE LIMIT
queue.pml   COND
queue.pml   COND LOSSES=1
queue.pml   COND ANONYMOUS
queue.pml   ANONYMOUS LIMIT
queue.pml   REFUSE LIMIT
tally.pml   LIMIT STRANGER
foreign.pml PANICS
foreign.pml PANICS STRANGER
bias.pml    FIFO R0=READS R1=READS R2=WRITES+TIMED
bias.pml    FIFO R0=READS+TIMED R1=READS+WRITES R2=WRITES+TIMED
bias.pml    R0=READS R1=READS R2=WRITES+TIMED
bias.pml    R0=READS+UPGRADES R1=READS+UPGRADES R2=WRITES+DOWNGRADES
bias.pml    R0=READS R1=IN_WORD+UPGRADES R2=WRITES SLOTS=1
owners.pml  FIFO SHARE LIMIT
owners.pml  FIFO COND SHARE ONCE
owners.pml  FIFO COND STAYS ONCE
owners.pml  LIMIT
owners.pml  SHARE
owners.pml  COND ONCE
owners.pml  FIFO N=4 ONCE
stamped.pml LIMIT ONCE
stamped.pml CONVERT OPTIMISTIC
stamped.pml BIASES=2 CONVERT ONCE
mcs.pml     LIMIT
mcs.pml     ANYBODY
ticket.pml  LIMIT TICKETS=9
ticket.pml  ANYBODY LIMIT TICKETS=7
cycles.pml  LIMIT L=2
readers.pml
readers.pml FIRST=1 LIMIT
rules.pml   FIFO N=4 ONCE
rules.pml   LIMIT
keyed.pml   KEYS=1
keyed.pml   OWNERS ROUNDS=1
keyed.pml   OWNERS LIMIT ROUNDS=3 N=2
'

# Each line is a file, the mutant, and the switches with which it must be caught.
mutants='
queue.pml   CANCEL_NO_ADVANCE          FIFO LIMIT
queue.pml   UNLOCK_MISSES_QUEUED       FIFO
queue.pml   JOIN_NO_ADVANCE            FIFO
queue.pml   GRANT_OUTSIDE_GUARD        FIFO LIMIT
queue.pml   CANCEL_UNSEEN              FIFO LIMIT
queue.pml   SHARED_PAST_QUEUE          FIFO SHARE
queue.pml   UNLOCKSHARED_MISSES_QUEUED  FIFO SHARE RWMUTEX
queue.pml   TRANSFER_NO_ADVANCE        FIFO COND N=2
queue.pml   TRANSFER_KEEPS_LAST_WAKE   FIFO COND ANONYMOUS N=4 ONCE
queue.pml   SIGNAL_WITHOUT_TRANSFER    FIFO COND N=2
queue.pml   WAITER_COUNTED_LATE        FIFO COND N=2
queue.pml   LEAVER_STAYS_COUNTED       FIFO COND N=2
queue.pml   LIMIT_DECIDES_EARLY        COND N=2
queue.pml   LATE_UNPARK                LIMIT
queue.pml   REFUSE_LEAVES_PERMIT       REFUSE
queue.pml   COMPETE_KEEPS_WOKEN
queue.pml   COMPETE_STORES
queue.pml   UNLOCK_WAKES_NOBODY
queue.pml   UNLOCK_IGNORES_RESERVED     LOSSES=2
queue.pml   COMPETE_RESERVES_NOT           SHARE RWMUTEX
queue.pml   COMPETE_STAYS_WAITING
queue.pml   OVERTAKER_RESERVES_FREE    ANONYMOUS
queue.pml   OVERTAKER_LOOKS_EARLY      LIMIT
queue.pml   JOIN_STORES                FIFO
queue.pml   SHARED_PAST_RESERVED           SHARE
queue.pml   SENDS_PAST_WRITER          SHARE
queue.pml   SENDS_OVERDUE              SHARE LOSSES=2 N=2
queue.pml   SENT_STAY_QUEUED           SHARE
queue.pml   SENT_RETURNS               SHARE
queue.pml   SENT_SLEEPS                SHARE
queue.pml   SENT_UNSEEN                SHARE LIMIT N=2
queue.pml   SENT_LEAVES_UNPARK         SHARE LIMIT N=2
tally.pml   JOIN_KEEPS_TALLY
tally.pml   MOVE_STORES
tally.pml   MOVE_LEAVES_QUEUE
tally.pml   MOVE_DESPITE_PENDING
tally.pml   TAKEN_BACK_FIRST
tally.pml   TAKEN_BACK_UNGUARDED
tally.pml   RELEASE_KEEPS_WORD
tally.pml   UNLOCK_STORES
foreign.pml ABANDON_KEEPS_SIGNAL       PANICS STRANGER ONCE
foreign.pml ABANDON_LEAVES_PERMIT      PANICS STRANGER ONCE
foreign.pml ABANDON_KEEPS_GATE         PANICS STRANGER ONCE
foreign.pml ABANDON_AWAITS_GATE        PANICS STRANGER ONCE
foreign.pml RELEASE_FIRST              N=2
foreign.pml GATE_OPENS_FIRST
bias.pml    READER_LOOKS_ONCE          FIFO
bias.pml    EMPTY_SKIPS_SLOT           FIFO
bias.pml    EMPTY_SKIPS_COLLIDED          FIFO SLOTS=1
bias.pml    ADVANCE_IGNORES_TABLE      FIFO
bias.pml    ADMIT_KEEPS_BIAS           FIFO R0=READS R1=WRITES R2=WRITES+DOWNGRADES
bias.pml    REVOKE_LOOKS_FIRST         FIFO
bias.pml    DROP_WITHOUT_LOOK          FIFO
bias.pml    READER_LEAVES_SILENTLY     FIFO
bias.pml    READER_STAYS               FIFO
bias.pml    EMPTY_SEES_COUNTED         FIFO N=2 R0=READS+UPGRADES R1=READS
bias.pml    BIAS_DESPITE_QUEUE          FIFO
bias.pml    RUNLOCK_LOOKS_FIRST        FIFO
bias.pml    FIRST_LEAVES_LATE          FIFO
bias.pml    UPGRADE_KEEPS_BIAS         FIFO N=2 R0=READS+UPGRADES R1=READS
owners.pml  CLAIM_COUNTS_TWICE         FIFO
owners.pml  DISMISS_NO_ADVANCE         FIFO
owners.pml  DISMISS_FROM_CONDITION     FIFO COND ONCE
owners.pml  PARTIAL_RELEASE_FREES      FIFO
owners.pml  DOWNGRADE_ADMITS_NOBODY    FIFO SHARE
owners.pml  ARRIVE_KEEPS_SECOND_HOLD   FIFO SHARE ONCE
owners.pml  ARRIVE_ADMITS_NOBODY       FIFO SHARE STAYS ONCE
owners.pml  WAIT_ADMITS_NOT            FIFO COND STAYS ONCE
owners.pml  WAIT_GIVES_UP_OTHERS_HOLDS FIFO COND ONCE
stamped.pml UNLOCK_MISSES_PARKED
stamped.pml UNLOCKREAD_MISSES_PARKED
stamped.pml LOOK_NO_SETTLE
stamped.pml ADMIT_TELLS_TWICE
stamped.pml LIMIT_NO_SETTLE            LIMIT
stamped.pml LOOK_LEAVES_PERMIT         LIMIT N=2
stamped.pml SPIN_IGNORES_RESERVED
stamped.pml BARGER_FORGETS_THE_WAITER
stamped.pml BARGER_FORGETS_THE_WORD
stamped.pml WINNER_RESERVES_LATE
stamped.pml OVERFLOW_FORGOTTEN         WRITES=1
stamped.pml UNLOCK_KEEPS_VERSION       OPTIMISTIC N=2
stamped.pml FOLD_DOES_NOT_CLOSE        BIASES=1 N=2
stamped.pml FOLD_CLEARS_EARLY          BIASES=1 ONCE
stamped.pml READER_DOES_NOT_LOOK       BIASES=1 N=2
stamped.pml FOLDED_READER_LEAVES       BIASES=1 N=2
stamped.pml FOLDED_READER_KEEPS_VERSION BIASES=2 ONCE
stamped.pml WAIT_DOES_NOT_FOLD         BIASES=1 N=2
stamped.pml RELEASE_DOES_NOT_FOLD      BIASES=1 N=2
stamped.pml BIAS_WITHOUT_GUARD         BIASES=1 N=2
stamped.pml READERS_SENT_PAST_WRITER
stamped.pml READERS_SENT_OVERDUE       WRITES=4 N=2
stamped.pml READERS_SENT_TWICE         LIMIT
stamped.pml READER_SENT_RETURNS
stamped.pml READER_SENT_SLEEPS
mcs.pml     UNLOCK_DOES_NOT_WAIT_FOR_NEXT
mcs.pml     PARK_STORES
mcs.pml     RETIRE_RECYCLES_GRANTED    ANYBODY ONCE
mcs.pml     GIVEUP_STORES              LIMIT N=2
mcs.pml     REMOVE_CLEARS_LATE         LIMIT ONCE
ticket.pml  ENQUEUE_LOOKS_EARLY
ticket.pml  UNLOCK_MISSES_SLEEPERS
ticket.pml  ABANDONED_TICKET_FORGOTTEN LIMIT
ticket.pml  RELEASE_SERVES_VOID        LIMIT
ticket.pml  CANCEL_KEEPS_VOIDS         LIMIT
ticket.pml  CANCEL_KEEPS_SLEEPERS      LIMIT
ticket.pml  GIVEUP_UNSEEN              LIMIT
cycles.pml  TWO_LOOKS_ARE_ENOUGH       LIMIT L=2
cycles.pml  MUTEX_GIVEN_BACK_EARLY
cycles.pml  SEARCH_WITHOUT_JOINING
readers.pml FOLLOWS_ONE_HOLDER         FIRST=1
readers.pml QUEUE_IS_NO_EDGE
rules.pml   GATE_SET_AFTER_THE_LOOK    FIFO
rules.pml   GATE_STAYS_CLOSED          FIFO
rules.pml   NEWCOMER_MISSES_CLOSED     FIFO
rules.pml   RELEASE_LOOKS_EARLY        FIFO
rules.pml   RELEASE_MISSES_QUEUED      FIFO
rules.pml   ADVANCE_ADMITS_ONE         FIFO
rules.pml   ADVANCE_LETS_SMALL_ONES_PASS FIFO N=4 ONCE
rules.pml   LEAVER_FORGETS_THE_NEXT    FIFO LIMIT
rules.pml   LEAVER_LEAVES_UNPARK       FIFO LIMIT
rules.pml   LOSER_STAYS_AWAKE
rules.pml   LOSER_LOOKS_ONCE
rules.pml   LOSER_UNPARKS_ITSELF
rules.pml   RACER_IS_NOT_UNPARKED
rules.pml   RACER_IS_UNPARKED_AGAIN
rules.pml   PASSER_LEAVES_AWAKE
rules.pml   WINNER_FORGETS_THE_NEXT    LATCH
rules.pml   REFUSED_IS_UNPARKED_TWICE  REFUSE
rules.pml   REFUSAL_FORGETS_THE_NEXT   FIFO REFUSE
park.pml    GUARD_CLEARED_LATE
park.pml    GUARD_SET_LATE
park.pml    PARK_STORES_PARKED
park.pml    TICKET_AFTER_UNLOCK
park.pml    UNPARK_LEAVES_NO_PERMIT
keyed.pml   JOINS_FROM_ZERO            OWNERS N=2
keyed.pml   SWEEP_LOOKS_AT_LOCK        OWNERS N=2
keyed.pml   CONTENDED_SERVES_AGAIN     OWNERS N=2
keyed.pml   LAST_USER_LEAVES_ALONE     OWNERS N=2
keyed.pml   RELEASE_LOOKS_FIRST        OWNERS N=2
keyed.pml   RELEASE_SWEEPS_NOTHING     OWNERS N=2
keyed.pml   RELEASE_IS_NO_USER         OWNERS N=2
'

# check FOLDER EXPECTED OPTIONS FILE SWITCH...: one line of the table. EXPECTED is holds or caught.
check() {
  local here=$1 expected=$2 optimize=$3 file=$4 depth=1000000 dir options result=FAILED property
  shift 4
  options=("$optimize" -w -DSAFETY -DMEMLIM=2000)
  if [ "$optimize" = -O2 ]; then
    depth=8000000
    options+=(-DCOLLAPSE) # states that take less memory, and a third longer
  fi
  dir=$(mktemp -d "$here/XXXXXX")
  cp ./*.pml "$dir"
  cd "$dir"
  if ! { spin -a "${@/#/-D}" "$file" && gcc "${options[@]}" -o pan pan.c; } >log 2>&1; then
    printf 'FAILED  %s %s: %s\n' "$file" "$*" "$(tail -n 3 log)"
    return
  fi
  timeout 900 ./pan "-m$depth" -w22 -E >log 2>&1 || true
  times >took.txt # of this shell, and of the programs that it has run
  property=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' log)
  property=${property#assertion violated }
  if grep -q 'max search depth too small\|out of memory\|Search not completed' log && [ "$expected" = holds ]; then
    property="the search is not complete"
  elif [ "$expected" = holds ] && grep -q 'errors: 0' log; then
    result=holds
  elif [ "$expected" = caught ] && grep -q 'errors: 1' log && [[ $property =~ ^[a-z_]+$ ]]; then
    result=caught
  fi
  printf '%-7s %-11s %-62s %9s states %6.1f s  %s\n' "$result" "$file" "${*#MUTANT_}" \
    "$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' log)" \
    "$(awk -F'[ms ]' 'NR == 2 { print $1*60 + $2 + $4*60 + $5 }' took.txt)" "$property"
  cd "$here"
  rm -rf "$dir"
}
export -f check

all=false
if [ "${1-}" = -all ]; then
  all=true
  shift
fi
# A mutant that no line above names would never be checked.
listed=$(awk 'NF { print $2 }' <<<"$mutants" | sort)
written=$(grep -oh 'MUTANT_[A-Z_]*' ./*.pml | sed 's/MUTANT_//' | sort -u)
if [ "$listed" != "$written" ]; then
  echo "run.sh and the models do not have the same mutants:"
  diff <(echo "$listed") <(echo "$written") || true
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
  # The compiler's optimization takes longer than the small searches do without it.
  awk 'NF { print "holds -O0", $0 }' <<<"$small"
  if $all; then awk 'NF { print "holds -O2", $0 }' <<<"$large"; fi
  awk 'NF { $2 = "MUTANT_" $2; print "caught -O0", $0 }' <<<"$mutants"
} >"$work/list"
for word; do
  grep -e "$word" "$work/list" >"$work/some" || true
  mv "$work/some" "$work/list"
done
xargs -r -P 2 -L 1 bash -c 'check "$@"' _ "$work" <"$work/list" | tee "$work/table"

failed=$(grep -c '^FAILED' "$work/table" || true)
printf '%s configurations hold, %s mutants caught, %s failed, %s s\n' \
  "$(grep -c '^holds' "$work/table" || true)" "$(grep -c '^caught' "$work/table" || true)" "$failed" "$SECONDS"
[ "$failed" = 0 ] && [ "$(wc -l <"$work/table")" = "$(wc -l <"$work/list")" ]
