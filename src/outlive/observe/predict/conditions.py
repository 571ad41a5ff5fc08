"""Conditions that a rule may set for a call, besides its subcommand and options.

The field `asks` of a rule names public functions of this module, joined by `&`. For example: `is_called umount swapon &
not is_remote`. Conditions on text in another language are in `embedded_languages`, which is loaded only when a rule
names one of them.
"""

from __future__ import annotations

import re

from outlive.observe.shell.commands import PROGRAMS_OF_GIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.observe.shell.commands import Simple
    from outlive.observe.shell.split_options import Call

    Condition = Callable[..., bool]


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


_SHOWING_VERBS = words("list view status ls show verify logs diff")
_CONFIG_CHANGES = words("--unset --unset-all --add --edit -e --replace-all --rename-section --remove-section")
_CLOUD_READS = words(
    "describe list get show head lookup search filter tail ls wait print read scan query presign validate"
)
_CLOUD_CHANGES = words(
    "create delete update set unset add remove put start stop restart reboot terminate run deploy undeploy patch "
    "import export move attach detach enable disable reset resize submit apply cancel upload copy restore promote "
    "invoke publish send purge register deregister grant revoke rotate modify tag untag"
)
# Git's settings that name a program to run. Git with such a setting may change files, unless the program matches
# `_HARMLESS_PROGRAM`. Programs of that pattern only show text or connect to a server.
_PROGRAM_SETTINGS = words(
    "pager editor external command textconv fsmonitor sshcommand hookspath helper program clean smudge process cmd "
    "driver gitproxy askpass uploadpack receivepack"
)
_PROGRAM_OPTIONS = words("--upload-pack --receive-pack --open-files-in-pager --exec-path")
_HARMLESS_PROGRAM = (
    r"(:|true|false|/dev/null|(cat|less|more|head|bat|delta|ssh|vim?|nvim|nano)( (?!.*ProxyCommand)[\w ./=:-]*)?)?"
)
_CHANGING_METHODS = words("POST PUT PATCH DELETE")
_READING_METHODS = words("GET HEAD OPTIONS TRACE PROPFIND REPORT SEARCH")
_ENVIRONMENT_FILES = ("/activate", "/.cargo/env", "/.bashrc", "/.profile", "/.bash_profile", "/.zshrc", "/nvm.sh")


def parse(text: str) -> Callable[[Call, Simple], bool]:
    """Return a function that checks all conditions of a rule.

    `text` is the field `asks` of the rule, which names the conditions.
    """
    checks = [_parse_one(part.split()) for part in text.split("&")]
    return lambda call, command: all(check(call, command) for check in checks)


def _parse_one(part: list[str]) -> Callable[[Call, Simple], bool]:
    is_wanted = part[0] != "not"
    name, *given = part if is_wanted else part[1:]
    condition = _condition(name)
    return lambda call, command: condition(call, command, *given) is is_wanted


def _condition(name: str) -> Condition:
    if name.startswith("_") or name in {"parse", "words"}:
        raise KeyError(name)
    found = globals().get(name)
    if found is None:
        from outlive.observe.predict import embedded_languages  # noqa: PLC0415 - only rules about embedded languages need this import

        found = vars(embedded_languages)[name]
    return found  # type: ignore[no-any-return]


# --- the program and its operands -----------------------------------------------------------------


def is_called(_: Call, command: Simple, *names: str) -> bool:
    """Return whether the program's name is one of `names`."""
    return command.words[0].text.rpartition("/")[2] in names


def is_fed(_: Call, command: Simple) -> bool:
    """Return whether the command's input is a file, a pipe or a here-document."""
    return command.is_fed


def has_operands(call: Call, _: Simple) -> bool:
    """Return whether the call has words besides its options and its subcommand."""
    return bool(call.operands)


def has_two_operands(call: Call, _: Simple) -> bool:
    """Return whether the call has at least two operands."""
    return len(call.operands) > 1


def has_three_operands(call: Call, _: Simple) -> bool:
    """Return whether the call has at least three operands."""
    return len(call.operands) > 2


def has_operands_or(call: Call, _: Simple, *options: str) -> bool:
    """Return whether the call has an operand or one of `options`."""
    return bool(call.operands) or not call.names.isdisjoint(options)


def names_goal(call: Call, _: Simple, *goals: str) -> bool:
    """Return whether an operand is one of `goals`, the goals of a build tool.

    `sub:goal` counts as `goal`.
    """
    return any(word.text.rpartition(":")[2] in goals or word.text in goals for word in call.operands)


def only_word_is(call: Call, _: Simple, *expected: str) -> bool:
    """Return whether the call has only one word, and this word is in `expected`."""
    return len(call.words) == 1 and call.words[0].text in expected


def second_operand_is(call: Call, _: Simple, expected: str) -> bool:
    """Return whether the second operand is the word `expected`."""
    return [word.text for word in call.operands[1:2]] == [expected]


def second_operand_shows(call: Call, _: Simple) -> bool:
    """Return whether the second operand is a subcommand that only reads, like `view`."""
    verb = "".join(word.text for word in call.operands[1:2])
    return verb.rpartition("-")[2] in _SHOWING_VERBS


def last_operand_starts(call: Call, _: Simple, prefix: str) -> bool:
    """Return whether the last operand starts with `prefix`."""
    return bool(call.operands) and call.operands[-1].text.startswith(prefix)


def last_operand_has(call: Call, _: Simple, sign: str) -> bool:
    """Return whether the last operand contains the text `sign`."""
    return bool(call.operands) and sign in call.operands[-1].text


def assigns(call: Call, _: Simple) -> bool:
    """Return whether an operand is or may be an assignment, such as `a=b`."""
    return any("=" in word.text or not word.literal for word in call.operands)


def is_remote(call: Call, _: Simple) -> bool:
    """Return whether the last operand is a path on another machine."""
    last = call.operands[-1].text if call.operands else ""
    return ":" in last.partition("/")[0] or last.startswith("rsync://")


# --- git and the services that host repositories --------------------------------------------------


def git_runs(call: Call, command: Simple) -> bool:
    """Return whether a git call names a program that may do more than show text."""
    told = [value.text for name, value in command.sets if name in PROGRAMS_OF_GIT]
    for setting in call.values_of(("-c",)):
        name, _, value = setting.text.partition("=")
        if name.startswith("pager.") or name.lower().rpartition(".")[2] in _PROGRAM_SETTINGS:
            told.append(value)
    told += [word.text for word in call.operands if word.text.startswith("ext::")]
    return any(not re.fullmatch(_HARMLESS_PROGRAM, each) for each in told) or bool(call.names & _PROGRAM_OPTIONS)


def sets_a_value(call: Call, _: Simple) -> bool:
    """Return whether a `git config` call has a value, or an option that changes one."""
    return len(call.operands) > 1 or bool(call.names & _CONFIG_CHANGES)


def sends_fields(call: Call, command: Simple) -> bool:
    """Return whether a call of a hosting service's API sends data.

    A call with fields is a POST request, unless an option gives a method that only reads.
    """
    is_reading = call.value_of(("-X", "--method")) is not None and not sends(call, command)
    return sends(call, command) or (
        not is_reading and bool(call.names & {"-f", "-F", "--field", "--raw-field", "--input"})
    )


def is_a_query(call: Call, _: Simple) -> bool:
    """Return whether the GraphQL text of a call only reads."""
    fields = call.values_of(("-f", "-F", "--field", "--raw-field"))
    texts = [word.text.removeprefix("query=").lstrip() for word in fields if word.text.startswith("query=")]
    is_read = bool(texts) and all(word.literal for word in fields)
    return is_read and all(text.startswith(("query", "{")) and "mutation" not in text for text in texts)


# --- requests and clouds --------------------------------------------------------------------------


def sends(call: Call, _: Simple) -> bool:
    """Return whether a request sends data, or has a method that changes data."""
    method = call.value_of(("-X", "--request", "--method"))
    if method is not None:
        return not method.literal or method.text.upper() not in _READING_METHODS
    return bool(
        call.names
        & {
            *("-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--json", "-F", "--form", "-T"),
            *("--data-ascii", "--form-string", "--upload-file", "--post-data", "--post-file", "--body-data"),
        }
    )


def method_is_given(call: Call, _: Simple) -> bool:
    """Return whether a call of httpie has a method or fields that change data."""
    fields = [word.text for word in call.operands[1:] if re.match(r"[\w-]+(:=|=(?!=)|@)", word.text)]
    methods = _CHANGING_METHODS | {"GET", "HEAD", "OPTIONS"}
    first = call.operands[0].text.upper() if call.operands else ""
    return first in _CHANGING_METHODS or (first not in methods and bool(fields))


def fetches_nothing(call: Call, _: Simple) -> bool:
    """Return whether `wget` writes no file."""
    target = call.value_of(("-O", "--output-document"))
    return "--spider" in call.names or (target is not None and target.text == "-")


def asks_a_cloud(call: Call, _: Simple) -> bool:
    """Return whether a call of a cloud's command-line program only reads data.

    The verb decides. It is the first known word among the operands after the name of the cloud's service.
    """
    first_words = (word.text.removeprefix("batch-").partition("-")[0] for word in call.operands[1:4])
    return next((word for word in first_words if word in _CLOUD_READS | _CLOUD_CHANGES), "") in _CLOUD_READS


# --- programs of the system -----------------------------------------------------------------------


def edits_in_place(call: Call, _: Simple) -> bool:
    """Return whether the program edits files in place, instead of printing the result."""
    return bool(call.names & {"-i", "--in-place"})


def sed_keeps_no_copy(call: Call, _: Simple) -> bool:
    """Return whether an empty argument follows `sed -i`.

    On BSD, `sed` then keeps no copy of the files that it edits.
    """
    return "-i" in call.names and [word.text for word in call.operands[:1]] == [""]


def awk_edits_in_place(call: Call, _: Simple) -> bool:
    """Return whether awk includes the extension that writes files back."""
    return any(word.text == "inplace" for word in call.values_of(("-i", "--include")))


def archive_is_read(call: Call, _: Simple) -> bool:
    """Return whether `tar` only lists an archive or compares it with files."""
    return _archive_mode(call) in {"t", "d"}


def archive_is_made(call: Call, _: Simple) -> bool:
    """Return whether `tar` writes an archive."""
    return _archive_mode(call) in {"c", "r", "u", "A"}


def _archive_mode(call: Call) -> str:
    modes = {"list": "t", "compare": "d", "diff": "d", "create": "c", "append": "r", "update": "u", "extract": "x"}
    long = next((letter for name, letter in modes.items() if "--" + name in call.names), "")
    return long or next((letter for letter in "tdcruAx" if "-" + letter in call.names), "")


def mode_is_an_option(call: Call, _: Simple) -> bool:
    """Return whether `chmod` gets its mode from a word like `-x`, or from a file."""
    return "--reference" in call.names or any(re.fullmatch(r"-[rwxXstugoa,=+-]+", name) for name in call.names)


def sets_the_clock(call: Call, _: Simple) -> bool:
    """Return whether `date` sets the clock. A word with `+` only formats the output."""
    return any(not word.text.startswith("+") for word in call.operands)


def dd_writes(call: Call, _: Simple) -> bool:
    """Return whether `dd` is given an output file."""
    return any(word.text.startswith("of=") for word in call.operands)


def ends_own_children(call: Call, _: Simple) -> bool:
    """Return whether a call ends only jobs of the shell that makes the call."""
    return bool(call.operands) and all(word.text == "$!" or word.text.startswith("%") for word in call.operands)


def changes_only_this_shell(call: Call, _: Simple) -> bool:
    """Return whether a file that `source` runs only sets up the shell."""
    return bool(call.operands) and call.operands[0].text.endswith(_ENVIRONMENT_FILES)
