# The completion of lockvet for fish. It runs nothing but "lockvet help complete".

function __lockvet_complete
    set -l words (commandline -opc) (commandline -ct)
    command lockvet help complete $words[2..-1] 2>/dev/null
    or __fish_complete_directories (commandline -ct) # a package
end

complete -c lockvet -e
complete -c lockvet -f -a '(__lockvet_complete)'
