#compdef outlive
# Completion of outlive for zsh. It asks `outlive completion candidates` for the candidates.

_outlive() {
    local -a answer
    answer=("${(@f)$(command outlive completion candidates -- "${(@)words[1,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    case $answer[1] in
        directories)
            compset -P '--*='
            _files -/
            return ;;
        command\ *)  # complete the rest with the completion of the inner command
            shift ${answer[1]#command } words
            ((CURRENT -= ${answer[1]#command }))
            _normal
            return ;;
    esac
    shift answer
    if [[ $answer[1] == *$'\t'* ]]; then
        answer=("${(@)answer/$'\t'/:}")  # the format of _describe; -V keeps the order
        _describe -V -t candidates candidate answer
    elif [[ -n $answer ]]; then
        _wanted -V candidates expl candidate compadd -a answer
    fi
}

# If zsh has autoloaded this file from fpath, the file is the body of the function, so call the function. Otherwise
# the file was evaluated, so only register the function.
if [[ $funcstack[1] == _outlive ]]; then _outlive "$@"; else compdef _outlive outlive; fi
