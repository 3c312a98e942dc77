# The completion of lockvet for bash. It runs nothing but "lockvet help complete".

_lockvet() {
	local name candidates
	COMPREPLY=()
	if ! candidates=$(command lockvet help complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); then
		compopt -o default 2>/dev/null # a package: a folder
		return
	fi
	while IFS=$'\t' read -r name _; do
		if [[ -n $name ]]; then
			COMPREPLY+=("$name")
		fi
	done <<<"$candidates"
}

complete -F _lockvet lockvet
