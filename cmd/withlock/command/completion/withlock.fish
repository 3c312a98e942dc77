# The completion of withlock for fish. It runs nothing but "withlock complete".

function __withlock_complete
    set -l words (commandline -opc) (commandline -ct)
    command withlock complete $words[2..-1] 2>/dev/null
    or __fish_complete_path (commandline -ct) # the command's own argument
end

complete -c withlock -e
complete -c withlock -f -a '(__withlock_complete)'
