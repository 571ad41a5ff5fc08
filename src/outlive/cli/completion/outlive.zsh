#compdef outlive
# Completion of outlive for zsh. What may follow is asked from `outlive completion candidates`.

_outlive() {
    local -a answer
    answer=("${(@f)$(command outlive completion candidates -- "${(@)words[1,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    case $answer[1] in
        directories)
            compset -P '--*='
            _files -/
            return ;;
        command\ *)  # leave the rest to the completion of the command that it is
            shift ${answer[1]#command } words
            ((CURRENT -= ${answer[1]#command }))
            _normal
            return ;;
    esac
    shift answer
    if [[ $answer[1] == *$'\t'* ]]; then
        answer=("${(@)answer/$'\t'/:}")  # as _describe wants it; -V keeps the order
        _describe -V -t candidates candidate answer
    elif [[ -n $answer ]]; then
        _wanted -V candidates expl candidate compadd -a answer
    fi
}

# Autoloaded from fpath this file is the function's body; evaluated it only defines it.
if [[ $funcstack[1] == _outlive ]]; then _outlive "$@"; else compdef _outlive outlive; fi
