#!/usr/bin/env bash
# run.sh [-all]: checks takeover.pml and prints a table. Every configuration must hold, and every mutant must break a
# property. With -all it checks a larger configuration too. Needs spin and gcc.
set -euo pipefail
cd "$(dirname "$0")"

small='
W0=2
W0=2 L1=1
W0=1 W1=2 L1=1
'
large='
W0=2 W1=2
W0=3
'

# Each line is a mutant, the property that it must break, and the switches with which it does.
mutants='
LEASE_BEGINS_WITH_THE_ANSWER    no_hold_is_taken  W0=2
LOOKUP_BEGINS_THE_LEASE         no_hold_is_taken  W0=2
LOOKUP_BELIEVES_THE_FIRST_LOOK  settled_is_final  W0=2
OWN_LEASE_COUNTS                no_hold_is_taken  W0=2 L1=1
RELEASE_FREES_ANY               no_hold_is_taken  W0=3
RENEWAL_ACQUIRES                token_grows       W0=3
SEEN_WHEN_ASKED                 no_hold_is_taken  W0=2
SIGHT_OUTLASTS_VERSION          no_hold_is_taken  W0=2
SWAP_COMPARES_NOT               token_grows       W0=2
TAKEOVER_KEEPS_TOKEN            token_grows       W0=2
VERSION_IS_THAT_OF_THE_CONTENT  settled_is_final  W0=2
'

# check EXPECTED SWITCH...: one line of the table. EXPECTED is holds, or the property that must break.
check() {
  local expected=$1 dir result=FAILED property
  shift
  dir=$(mktemp -d "$work/XXXXXX")
  cp takeover.pml "$dir"
  (
    cd "$dir"
    spin -a "${@/#/-D}" takeover.pml && gcc -O1 -w -DSAFETY -DCOLLAPSE -DMEMLIM=2500 -o pan pan.c &&
      timeout 900 ./pan -m1000000 -w22 -E
  ) >"$dir/log" 2>&1 || true
  property=$(sed -n 's/^pan:1: assertion violated \([a-z_]*\) (at depth.*/\1/p' "$dir/log")
  if [ "$property" = "$expected" ]; then
    result=caught
  elif [ "$expected" = holds ] && grep -q 'errors: 0' "$dir/log" &&
    ! grep -q 'max search depth too small\|reached -DMEMLIM\|out of memory\|Search not completed' "$dir/log"; then
    result=holds
  fi
  printf '%-7s %-50s %9s states  %s\n' "$result" "${*#MUTANT_}" \
    "$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/log")" "$property"
  [ "$result" != FAILED ] || tail -n 20 "$dir/log" >&2
  rm -rf "$dir"
}

# A mutant that no line above names would never be checked.
if ! diff <(awk 'NF { print $1 }' <<<"$mutants" | sort) \
  <(grep -oh 'MUTANT_[A-Z_]*' takeover.pml | sed 's/MUTANT_//' | sort -u); then
  echo "run.sh and the model do not have the same mutants"
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "${1-}" = -all ]; then small+=$large; fi
while read -r line; do check holds $line; done < <(awk NF <<<"$small") | tee "$work/table"
while read -r mutant property switches; do check "$property" "MUTANT_$mutant" $switches; done < <(awk NF <<<"$mutants") | tee -a "$work/table"
! grep '^FAILED' "$work/table" >/dev/null || exit 1
echo "all as expected, $SECONDS s"
