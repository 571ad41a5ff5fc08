"""The script for fish: one line per verb, option and kind of word, each with its condition."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlive.cli.options import Option
    from outlive.cli.shells.verbs import Verb

_SCRIPT = r"""# Completion of outlive for fish, made by `outlive completion fish`.

# Whether the verb is one of these, or none yet if none is given. Only the first word can be it:
# fish's own __fish_seen_subcommand_from would find a `show` in `outlive run -- git show`.
function __outlive_verb
    set -l words (commandline -opc)
    if test (count $argv) -eq 0
        test (count $words) -eq 1
    else
        test (count $words) -ge 2; and contains -- $words[2] $argv
    end
end

function __outlive_dashes
    contains -- -- (commandline -opc)
end

# Leaves what stands after `--` to whoever completes that command.
function __outlive_command
    set -l words (commandline -opc)
    set -l rest (string escape -- $words[(math 1 + (contains -i -- -- $words))..])
    complete -C "$rest "(commandline -ct)
end

complete -c outlive -e
complete -c outlive -f
complete -c outlive -n __outlive_verb -l help -d 'list the commands'
complete -c outlive -n __outlive_verb -l version -d 'print the version'
@verbs@
"""


def script(verbs: Sequence[Verb]) -> str:
    """The whole script."""
    return _SCRIPT.replace("@verbs@", "\n".join(line for verb in verbs for line in _verb_lines(verb)))


def _verb_lines(verb: Verb) -> Iterator[str]:
    here = f"__outlive_verb {' '.join(verb.names)}"
    for name in verb.names:
        yield f"complete -c outlive -n __outlive_verb -a {name} -d {_quoted(verb.summary)}"
    for option in verb.options:
        name = option.name.removeprefix("--")
        yield f"complete -c outlive -n '{here}' -l {name}{_value(option)} -d {_quoted(option.help)}"
    if isinstance(verb.takes, tuple):
        yield f"complete -c outlive -n '{here}' -a '{' '.join(verb.takes)}'"
    elif verb.takes == "task":
        # -k keeps the order: newest first.
        yield f"complete -c outlive -n '{here}' -k -a '(command outlive completion tasks 2>/dev/null)'"
    elif verb.takes == "command":
        # Before `--` a command has no place, so the dashes themselves are the word to offer.
        yield f"complete -c outlive -n '{here}; and not __outlive_dashes' -a -- -d 'then the command'"
        yield f"complete -c outlive -n '{here}; and __outlive_dashes' -a '(__outlive_command)'"


def _value(option: Option) -> str:
    """How its value is completed; `-x` alone for what nobody can guess, such as a duration."""
    if option.metavar is None:
        return ""
    if option.choices:
        return f" -x -a '{' '.join(option.choices)}'"
    if option.takes is None:
        return " -x"
    asked = {
        "directory": '__fish_complete_directories (string replace -r "^--[^=]*=" "" -- (commandline -ct))',
        "group": "command outlive completion groups 2>/dev/null",
        "task": "command outlive completion tasks 2>/dev/null",
    }[option.takes]
    return f" -x -a '({asked})'"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
