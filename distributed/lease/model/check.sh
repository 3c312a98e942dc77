# shellcheck shell=bash
# check.sh is sourced by the run.sh of a folder of models, which sets small, large and mutants. A line of small and
# large is a model with its switches. A line of mutants is a mutant, the property that it must break, and the model and
# switches with which it does.

# check EXPECTED MODEL SWITCH...: one line of the table. EXPECTED is holds, or the property that must break.
check() {
  local expected=$1 model=$2 dir optimize=-O0 result=FAILED property
  shift 2
  if [ "$expected" = holds ]; then optimize=-O1; fi
  dir=$(mktemp -d "$work/XXXXXX")
  cp "$model" "$dir"
  (
    cd "$dir"
    spin -a "${@/#/-D}" "$model" && gcc $optimize -w -DSAFETY -DCOLLAPSE -DMEMLIM=2500 -o pan pan.c &&
      timeout 900 ./pan -m1000000 -w22 -E
  ) >"$dir/log" 2>&1 || true
  property=$(sed -n 's/^pan:1: assertion violated \([a-z_]*\) (at depth.*/\1/p' "$dir/log")
  if [ "$property" = "$expected" ]; then
    result=caught
  elif [ "$expected" = holds ] && grep -q 'errors: 0' "$dir/log" &&
    ! grep -q 'max search depth too small\|reached -DMEMLIM\|out of memory\|Search not completed' "$dir/log"; then
    result=holds
  fi
  printf '%-7s %-60s %9s states  %s\n' "$result" "$model ${*#MUTANT_}" \
    "$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/log")" "$property"
  [ "$result" != FAILED ] || tail -n 20 "$dir/log" >&2
  rm -rf "$dir"
}
export -f check

# A mutant that no line names would never be checked.
if ! diff <(awk 'NF { print $1 }' <<<"${mutants:?}" | sort) \
  <(grep -oh 'MUTANT_[A-Z_]*' ./*.pml | sed 's/MUTANT_//' | sort -u); then
  echo "run.sh and the models do not have the same mutants"
  exit 1
fi

work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT
if [ "${1-}" = -all ]; then
  small="${small:?}${large:?}"
  shift
fi
# Lines of the arguments of check.
{
  awk 'NF { print "holds", $0 }' <<<"${small:?}"
  awk NF <<<"$mutants" | while read -r mutant property model switches; do
    echo "$property $model MUTANT_$mutant $switches"
  done
} | sed 's/ *$//' >"$work/list"
for word; do
  grep -e "$word" "$work/list" >"$work/some" || true
  mv "$work/some" "$work/list"
done
xargs -r -P 2 -L 1 bash -c 'check "$@"' _ <"$work/list" | tee "$work/table"
if grep -q '^FAILED' "$work/table" || [ "$(wc -l <"$work/table")" != "$(wc -l <"$work/list")" ]; then exit 1; fi
echo "all as expected, $SECONDS s"
