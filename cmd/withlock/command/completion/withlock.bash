# The completion of withlock for bash. It runs nothing but "withlock complete".

_withlock() {
	# Bash splits a word at each : and =. A part without a space in front belongs to the word before.
	local line=${COMP_LINE:0:COMP_POINT} part word='' candidates
	local -a words=()
	for part in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
		if [[ $line == [[:space:]]* ]]; then
			words+=("$word")
			word=''
			line=${line#"${line%%[![:space:]]*}"}
		fi
		word+=$part
		line=${line#"$part"}
	done
	words+=("$word")

	COMPREPLY=()
	if ! candidates=$(command withlock complete "${words[@]:1}" 2>/dev/null); then
		compopt -o default 2>/dev/null # the command's own argument: a file
		return
	fi
	while IFS=$'\t' read -r word _; do
		if [[ -n $word ]]; then
			COMPREPLY+=("$word")
		fi
	done <<<"$candidates"
}

complete -F _withlock withlock
