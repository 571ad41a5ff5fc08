# Completion of outlive for fish. It asks `outlive completion candidates` for the candidates.

function __outlive
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer (command outlive completion candidates -- $words "$current" 2>/dev/null)
    switch "$answer[1]"
        case directories
            set -l option (string match -r -- '^--[^=]*=' "$current")
            for name in (__fish_complete_directories (string replace -- "$option" '' "$current"))
                echo -- "$option$name"
            end
        case 'command *' # complete the rest with the completion of the inner command
            set -l first (math 1 + (string replace 'command ' '' -- $answer[1]))
            complete -C (string join ' ' -- (string escape -- $words[$first..]) "$current")
        case '*'
            printf '%s\n' $answer[2..]
    end
end

complete -c outlive -e
complete -c outlive -f -k -a '(__outlive)'
