#!/usr/bin/env bash
# run.sh [-all] [WORD...]: checks the models of this folder and prints a table. Every configuration must hold, and every
# mutant must break a property. With -all it checks larger configurations too; with words it checks only the lines that
# contain each of them. Needs spin and gcc.
# shellcheck disable=SC2034 # the lists are for check.sh
set -euo pipefail
cd "$(dirname "$0")"

small='
grant.pml
grant.pml H=1 LATE TIME=5
grant.pml H=1 LATE LATEST=2 TIME=5
requests.pml
requests.pml A0=1 QUEUE
requests.pml A0=1 QUEUE SESSION
requests.pml SESSION
requests.pml SETTLES
turns.pml ROUNDS=1
'
large='
grant.pml TIME=5
grant.pml H=1 LATE TIME=7
grant.pml H=1 LATE LATEST=2 TIME=6
requests.pml FAULTS=2
requests.pml A0=1 QUEUE DOUBTS=2
requests.pml A0=1 QUEUE FAULTS=2 LEASE=1 TIME=2
turns.pml
'

mutants='
AN_EXTENSION_KEEPS_THE_END                 valid_here_is_held_there     grant.pml
AN_EXTENSION_MEETS_THE_NEXT_OWNER          a_turn_has_half_a_lease      grant.pml
AN_UNANSWERED_EXTENSION_IS_FORGOTTEN       valid_here_is_held_there     grant.pml
AN_UNANSWERED_EXTENSION_SHORTENS_THE_COUNT no_end_is_later_than_counted grant.pml
AN_UNANSWERED_REQUEST_PROLONGS_NOTHING     no_end_is_later_than_counted grant.pml
A_DOUBT_COUNTS_FROM_THE_SENDING            no_end_is_later_than_counted grant.pml H=1 LATEST=1 TIME=6
A_DOUBT_IS_NOT_PROLONGED                   no_end_is_later_than_counted grant.pml H=1 LATEST=2 TIME=6
A_LATE_ANSWER_STAYS                        nothing_is_left              grant.pml
A_LATE_REQUEST_KEEPS_AN_EXTENSION          valid_here_is_held_there     grant.pml H=1 LATE
A_LOST_HOLD_COMES_BACK                     lost_stays_lost              grant.pml
A_PARTIAL_FAILURE_IS_A_LOSS                a_loss_is_one                grant.pml
A_RENEWAL_COUNTS_FROM_ITS_ANSWER           valid_here_is_held_there     grant.pml
A_RENEWAL_FORGETS_EXTENSIONS               valid_here_is_held_there     grant.pml
A_RENEWAL_IS_NOT_TOLD                      valid_here_is_held_there     grant.pml
A_SHORTER_REQUEST_SHORTENS_THE_COUNT       no_end_is_later_than_counted grant.pml
A_SHORT_HOLD_IS_HANDED                     a_turn_has_half_a_lease      grant.pml
A_TRIP_IS_NOT_COUNTED                      no_end_is_later_than_counted grant.pml
EXTEND_SAYS_NIL_AFTER_A_RELEASE            released_is_over             grant.pml
THE_END_OF_A_DOUBT_COUNTS_NOTHING          no_end_is_later_than_counted grant.pml H=1 LATEST=1 TIME=6
THE_END_OF_A_DOUBT_FORGETS_REQUESTS        no_end_is_later_than_counted grant.pml H=1 LATE LATEST=2 LONG=6

A_LATE_REQUEST_IS_NOT_SWEPT           nothing_is_left           requests.pml A0=1
A_RELEASE_THAT_FINDS_NOTHING_SETTLES  nothing_is_left           requests.pml A0=1 SETTLES
A_SESSIONS_DOUBT_COUNTS_FROM_SENDING  nothing_is_left           requests.pml A0=1 SESSION
A_RELEASE_SETTLES_THE_DOUBT           nothing_is_left           requests.pml A0=1 QUEUE
DOUBT_ENDS_WITH_THE_LOSS              nothing_is_left           requests.pml A0=1 QUEUE
DOUBT_ENDS_WITH_THE_PLACE             nothing_is_left           requests.pml A0=1 QUEUE
DOUBT_ENDS_WITH_THE_RELEASE           nothing_is_left           requests.pml A0=1 QUEUE
LEASE_BEGINS_WITH_THE_ANSWER          no_hold_is_taken          requests.pml A0=1
LOOKUP_TRUSTS_EARLIER_REQUESTS        nothing_is_left           requests.pml A0=1 QUEUE
ONE_LATE_REQUEST_SETTLES_ALL          nothing_is_left           requests.pml A0=1 QUEUE DOUBTS=2
THE_NAME_IS_USED_AGAIN                nothing_is_left           requests.pml A0=1
UNDO_TRUSTS_A_REFUSAL                 nothing_is_left           requests.pml A0=1 QUEUE

AN_UNDOING_IS_NO_JOB                  close_waits_for_all       turns.pml ROUNDS=1
AN_UNLOCK_LEAVES_WHAT_NOBODY_TAKES    nothing_is_left           turns.pml ROUNDS=1
AN_UNLOCK_OF_A_LOST_HOLD_IS_NOT_BUSY  closed_has_nothing        turns.pml ROUNDS=1
A_LOST_HOLD_IS_NOT_SWEPT              each_owner_is_through     turns.pml ROUNDS=1
A_GRANT_AT_CLOSE_IS_KEPT              closed_has_nothing        turns.pml ROUNDS=1
CLOSE_COUNTS_HOLDS_ONLY               closed_gives_nothing      turns.pml ROUNDS=1
CLOSE_DOES_NOT_COUNT_WHAT_IS_BUSY     closed_gives_nothing      turns.pml ROUNDS=1
CLOSE_FORGETS_THE_SWEEP_THAT_IT_ENDS  closed_gives_nothing      turns.pml ROUNDS=1
CLOSE_MISSES_AN_UNLOCK                close_waits_for_all       turns.pml ROUNDS=1
CLOSE_MISSES_WHAT_IS_BUSY             close_waits_for_all       turns.pml ROUNDS=1
CLOSE_SWEEPS_NO_LOST_HOLD             closed_has_nothing        turns.pml ROUNDS=1
ENSURE_DOES_NOT_WAIT_UNTIL_IDLE       one_asks                  turns.pml ROUNDS=1
THE_ANSWER_SETTLES_BEFORE_ITS_RELEASE closed_has_nothing        turns.pml ROUNDS=1
'

# shellcheck source=distributed/lease/model/check.sh
. ./check.sh
