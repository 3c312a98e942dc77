#!/usr/bin/env bash
# run.sh [-all] [WORD...]: checks the models and prints a table. Every configuration must hold, and every mutant must break
# a property. With -all it checks larger configurations too; with words it checks only the lines that contain each of them.
# Needs spin and gcc.
# shellcheck disable=SC2034 # the lists are for check.sh
set -euo pipefail
cd "$(dirname "$0")"

small='
takeover.pml W0=2
takeover.pml W0=2 L1=1
takeover.pml W0=1 W1=2 L1=1
permits.pml W0=2
permits.pml W0=1 W1=2 P1=2
'
large='
takeover.pml W0=2 W1=2
takeover.pml W0=3
permits.pml W0=3
'

mutants='
CONFLICT_CHANGES_THE_OLD_DOCUMENT  no_hold_is_taken     permits.pml W0=2
LEASE_BEGINS_WITH_THE_ANSWER       no_hold_is_taken     takeover.pml W0=2
LOOKUP_BEGINS_THE_LEASE            no_hold_is_taken     takeover.pml W0=2
LOOKUP_BELIEVES_THE_FIRST_LOOK     settled_is_final     takeover.pml W0=2
OWN_LEASE_COUNTS                   no_hold_is_taken     takeover.pml W0=2 L1=1
RELEASE_FREES_ANOTHER              no_hold_is_taken     permits.pml W0=2
RELEASE_FREES_ANY                  no_hold_is_taken     takeover.pml W0=3
RENEWAL_ACQUIRES                   token_grows          takeover.pml W0=3
SEEN_WHEN_ASKED                    no_hold_is_taken     takeover.pml W0=2
SIGHT_OUTLASTS_RENEWAL             no_hold_is_taken     permits.pml W0=2
SIGHT_OUTLASTS_VERSION             no_hold_is_taken     takeover.pml W0=2
SWAP_COMPARES_NOT                  token_grows          takeover.pml W0=2
TAKEOVER_COUNTS_NOT                permits_are_counted  permits.pml W0=2 P1=2
TAKEOVER_KEEPS_TOKEN               token_grows          takeover.pml W0=2
TAKEOVER_REMOVES_ALL               no_hold_is_taken     permits.pml W0=2
VERSION_IS_THAT_OF_THE_CONTENT     settled_is_final     takeover.pml W0=2
'

# shellcheck source=distributed/lease/model/check.sh
. ../../lease/model/check.sh
