#!/usr/bin/env bash
# run.sh [-all] [WORD...]: checks the models and prints a table. Every configuration must hold, and every mutant must break
# a property. With -all it checks larger configurations too; with words it checks only the lines that contain each of them.
# Needs spin and gcc.
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

# Each line is a mutant, the property that it must break, and the model and switches with which it does.
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

# check EXPECTED MODEL SWITCH...: one line of the table. EXPECTED is holds, or the property that must break.
check() {
  local expected=$1 model=$2 dir result=FAILED property
  shift 2
  dir=$(mktemp -d "$work/XXXXXX")
  cp "$model" "$dir"
  (
    cd "$dir"
    spin -a "${@/#/-D}" "$model" && gcc -O1 -w -DSAFETY -DCOLLAPSE -DMEMLIM=2500 -o pan pan.c &&
      timeout 900 ./pan -m1000000 -w22 -E
  ) >"$dir/log" 2>&1 || true
  property=$(sed -n 's/^pan:1: assertion violated \([a-z_]*\) (at depth.*/\1/p' "$dir/log")
  if [ "$property" = "$expected" ]; then
    result=caught
  elif [ "$expected" = holds ] && grep -q 'errors: 0' "$dir/log" &&
    ! grep -q 'max search depth too small\|reached -DMEMLIM\|out of memory\|Search not completed' "$dir/log"; then
    result=holds
  fi
  printf '%-7s %-55s %9s states  %s\n' "$result" "$model ${*#MUTANT_}" \
    "$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/log")" "$property"
  [ "$result" != FAILED ] || tail -n 20 "$dir/log" >&2
  rm -rf "$dir"
}

# A mutant that no line above names would never be checked.
if ! diff <(awk 'NF { print $1 }' <<<"$mutants" | sort) \
  <(grep -oh 'MUTANT_[A-Z_]*' takeover.pml permits.pml | sed 's/MUTANT_//' | sort -u); then
  echo "run.sh and the model do not have the same mutants"
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "${1-}" = -all ]; then
  small+=$large
  shift
fi
# Lines of the arguments of check.
{
  awk 'NF { print "holds", $0 }' <<<"$small"
  awk NF <<<"$mutants" | while read -r mutant property model switches; do
    echo "$property $model MUTANT_$mutant $switches"
  done
} >"$work/list"
for word; do
  grep -e "$word" "$work/list" >"$work/some" || true
  mv "$work/some" "$work/list"
done
while read -ra arguments; do check "${arguments[@]}"; done <"$work/list" | tee "$work/table"
if grep -q '^FAILED' "$work/table"; then exit 1; fi
echo "all as expected, $SECONDS s"
