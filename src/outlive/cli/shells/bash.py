"""The script for bash.

Bash hands over the words and takes back candidates, so the walk over the words is ours. Names are
compared and quoted by hand: `compgen -W`, which everybody uses, expands what stands in a name, and
a group called `$(reboot)` would be obeyed by whoever presses TAB.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlive.cli.options import Option
    from outlive.cli.shells.verbs import Verb

_SCRIPT = r"""# Completion of outlive for bash, made by `outlive completion bash`.

# Offers those of the given words that begin as the current one does.
_outlive_offer() {
    local each
    for each; do
        if [[ $each == "$cur"* ]]; then COMPREPLY+=("$each"); fi
    done
}

# Offers what outlive knows by name, quoted: also : = and @, at which readline would break the word.
_outlive_known() {
    local name
    while IFS=$'\t' read -r name _; do
        printf -v name %q "$name"
        name=${name//:/\\:} name=${name//=/\\=} name=${name//@/\\@}
        _outlive_offer "$name"
    done < <(command outlive completion "$1" 2>/dev/null)
}

# Leaves the words from the given one on to whoever completes that command.
_outlive_command() {
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    else
        compopt -o default
    fi
}

_outlive() {
    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} i IFS=$' \t\n'
    local option= options= valued= takes= words=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        if [[ $cur == -* ]]; then _outlive_offer --help --version; else _outlive_offer @names@; fi
        return
    fi
    case $verb in
@verbs@
        *) return ;;
    esac
    # Which option the current word is the value of. Readline takes `--name=value` for three words.
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == = ]]; then
            continue
        elif [[ $option ]]; then
            option=
        elif [[ ${COMP_WORDS[i]} == -- ]]; then
            if [[ $takes == command ]]; then _outlive_command $((i + 1)); fi
            return
        elif [[ " $valued " == *" ${COMP_WORDS[i]} "* ]]; then
            option=${COMP_WORDS[i]}
        fi
    done
    if [[ $cur == = || ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
        # The value of an option, or some other word with a = in it, of which we know nothing.
        if [[ ! $option ]]; then return; fi
        cur=${cur#=}
    fi
    if [[ $option ]]; then
        case "$verb $option" in
@values@
        esac
    elif [[ $cur == -* || ! $takes ]]; then
        _outlive_offer $options
    elif [[ $takes == task ]]; then
        _outlive_known tasks
    else
        _outlive_offer $words
    fi
}

complete -F _outlive outlive
"""


def script(verbs: Sequence[Verb]) -> str:
    """The whole script."""
    names = " ".join(name for verb in verbs for name in verb.names)
    return (
        _SCRIPT.replace("@names@", names)
        .replace("@verbs@", "\n".join(line for verb in verbs for line in _verb_lines(verb)))
        .replace("@values@", "\n".join(line for verb in verbs for line in _value_lines(verb)))
    )


def _verb_lines(verb: Verb) -> Iterator[str]:
    """What the verb has, as variables of the walk."""
    options = " ".join(option.name for option in verb.options)
    valued = " ".join(option.name for option in verb.options if option.metavar)
    yield f"        {' | '.join(verb.names)})"
    yield f"            verb={verb.names[0]} options='{options}' valued='{valued}'"
    if verb.takes == "command":
        # Before `--` a command has no place: options, and the dashes themselves.
        yield '            takes=command words="-- $options" options=$words'
    elif isinstance(verb.takes, tuple):
        yield f"            takes=words words='{' '.join(verb.takes)}'"
    elif verb.takes:
        yield f"            takes={verb.takes}"
    yield "            ;;"


def _value_lines(verb: Verb) -> Iterator[str]:
    for option in verb.options:
        if offer := _offer(option):
            yield f"            '{verb.names[0]} {option.name}') {offer} ;;"


def _offer(option: Option) -> str | None:
    """How the value of an option is completed; None for what nobody can guess, such as a duration."""
    if option.choices:
        return f"_outlive_offer {' '.join(option.choices)}"
    if option.takes is None:
        return None
    # Bash's own completion of directories knows of tildes and quotes.
    return {
        "directory": "compopt -o dirnames",
        "group": "_outlive_known groups",
        "task": "_outlive_known tasks",
    }[option.takes]
