# Completion of outlive for bash. It asks `outlive completion candidates` for the candidates.

# Complete the words from number $1 on with the completion of the inner command.
_outlive_command() {
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    else
        compopt -o default
    fi
}

_outlive() {
    local cur=${COMP_WORDS[COMP_CWORD]} answer name IFS=$' \t\n'
    COMPREPLY=()
    mapfile -t answer < <(command outlive completion candidates -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
    case ${answer[0]} in
        directories) compopt -o dirnames ;;
        command\ *) _outlive_command "${answer[0]#command }" ;;
    esac
    # Quote and compare the names here, because `compgen -W` would execute a group that is called `$(reboot)`. Escape
    # : = and @, because Readline would split the word there.
    for name in "${answer[@]:1}"; do
        printf -v name %q "${name%%$'\t'*}"
        name=${name//:/\\:} name=${name//=/\\=} name=${name//@/\\@}
        if [[ $name == "${cur#=}"* ]]; then COMPREPLY+=("$name"); fi
    done
}

complete -F _outlive outlive
