"""The script for zsh: `_arguments` knows how to walk, so the script is mostly the table itself."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlive.cli.options import Option
    from outlive.cli.shells.verbs import Verb

_SCRIPT = r"""#compdef outlive
# Completion of outlive for zsh, made by `outlive completion zsh`.

_outlive_tasks() {
    local -a found
    found=("${(@f)$(command outlive completion tasks 2>/dev/null)}")
    found=("${(@)found/$'\t'/:}")  # as _describe wants it; -V keeps the order, newest first
    if [[ -n $found ]]; then _describe -V -t tasks task found; fi
}

_outlive_groups() {
    local -a found
    found=("${(@f)$(command outlive completion groups 2>/dev/null)}")
    if [[ -n $found ]]; then _wanted -V groups expl group compadd -a found; fi
}

# Leaves what stands after `--` to whoever completes that command.
_outlive_command() {
    local -i dashes=$words[(i)--]
    shift $dashes words
    ((CURRENT -= dashes))
    _normal
}

_outlive() {
    local curcontext=$curcontext state state_descr line expl
    local -A opt_args
    local -a verbs
    verbs=(
@names@
    )
    if ((CURRENT == 2)); then
        if [[ $PREFIX == -* ]]; then
            _arguments : '--help[list the commands]' '--version[print the version]'
        else
            _describe -t commands command verbs
        fi
        return
    fi
    shift words
    ((CURRENT--))
    case $words[1] in
@verbs@
    esac
}

# Autoloaded from fpath this file is the function's body; evaluated it only defines it.
if [[ $funcstack[1] == _outlive ]]; then _outlive "$@"; else compdef _outlive outlive; fi
"""


def script(verbs: Sequence[Verb]) -> str:
    """The whole script."""
    names = (f"        {_quoted(f'{name}:{_escaped(verb.summary)}')}" for verb in verbs for name in verb.names)
    return _SCRIPT.replace("@names@", "\n".join(names)).replace(
        "@verbs@", "\n".join(line for verb in verbs for line in _verb_lines(verb))
    )


def _verb_lines(verb: Verb) -> Iterator[str]:
    yield f"        {' | '.join(verb.names)})"
    if verb.takes == "command":
        yield "            if (($words[(i)--] < CURRENT)); then _outlive_command; return; fi"
    yield " \\\n                ".join(("            _arguments :", *map(_quoted, _specs(verb))))
    yield "            ;;"


def _specs(verb: Verb) -> Iterator[str]:
    """The options and the words of a verb as `_arguments` spells them.

    Where a verb takes no words there is nothing to say of them, and the options are offered there.
    """
    for option in verb.options:
        name = f"*{option.name}" if option.repeat else option.name
        meaning = f"[{_escaped(option.help)}]"
        yield f"{name}={meaning}:{_escaped(option.metavar)}:{_value(option)}" if option.metavar else name + meaning
    if isinstance(verb.takes, tuple):
        yield f"1:word:({' '.join(verb.takes)})"
    elif verb.takes == "task":
        yield "*:task:_outlive_tasks"
    elif verb.takes == "command":
        # Before `--` a command has no place, so the dashes themselves are the word to offer.
        yield "1:dashes:(--)"


def _value(option: Option) -> str:
    """How its value is completed; a blank for what nobody can guess, such as a duration."""
    if option.choices:
        return f"({' '.join(option.choices)})"
    if option.takes is None:
        return " "
    return {"directory": "_files -/", "group": "_outlive_groups", "task": "_outlive_tasks"}[option.takes]


def _escaped(text: str) -> str:
    """Text in which nothing ends a part of a specification."""
    for special in "\\:[]":
        text = text.replace(special, "\\" + special)
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
