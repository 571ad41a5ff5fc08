"""Windows that the text of a command predicts.

A window is a time span in which a file differs from what the task found, for example between `git stash` and
`git stash pop`.
"""

from __future__ import annotations

from outlive.observe.shell.commands import join, program_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.observe.shell.commands import Simple

_MOVES = frozenset(("checkout", "switch"))
# Verbs of git whose effect `--abort` or a hard reset undoes.
_TURNS = frozenset(("merge", "revert", "cherry-pick", "rebase", "am", "pull", "reset"))
_RESTORES = frozenset(("checkout", "restore", "stash", "reset"))


def find_window(commands: Iterable[Simple]) -> Simple | None:
    """Return the first command that restores files which an earlier command changed.

    Returns None if there is no such command.
    """
    state = _State()
    own = (command for command in commands if command.words and command.elsewhere is None)
    return next((command for command in own if state.closes(command)), None)


def takes_away(command: Simple) -> bool:
    """Return whether a command removes or replaces files that it has not written."""
    if not command.words or command.elsewhere is not None:
        return False
    words = [word.text for word in command.words]
    if program_name(command) in {"gh", "glab"}:
        return words[1:3] in (["pr", "checkout"], ["mr", "checkout"])
    if program_name(command) != "git":
        return False
    verb, *rest = _without_options(words[1:]) or [""]
    options = {word.partition("=")[0] for word in rest if word.startswith("-")}
    operands = [word for word in rest if not word.startswith("-") or word == "-"]
    if verb in {"pull", "rebase", "merge"} and "--autostash" in options:
        return True
    return verb in _TAKES and _TAKES[verb](rest, options, operands)


def _stashes(rest: list[str], _: set[str], __: list[str]) -> bool:
    return not rest or rest[0] in {"push", "save"} or rest[0].startswith("-")


def _goes_to_another_commit(rest: list[str], options: set[str], operands: list[str]) -> bool:
    """Return whether `checkout` or `switch` changes the commit or discards changes."""
    is_new = bool(options & {"-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan"})
    return "--" in rest or bool(options & {"-p", "--patch", "--detach", "-d"}) or len(operands) > is_new


_TAKES: dict[str, Callable[[list[str], set[str], list[str]], bool]] = {
    "stash": _stashes,
    "checkout": _goes_to_another_commit,
    "switch": _goes_to_another_commit,
    "restore": lambda _, options, __: "--staged" not in options or "--worktree" in options,
    "bisect": lambda rest, _, __: rest[:1] not in ([], ["log"], ["view"], ["visualize"], ["terms"], ["help"]),
    "reset": lambda _, options, __: bool(options & {"--hard", "--merge", "--keep"}),
    "clean": lambda _, options, __: (
        not any("n" in each for each in options if each[1:2] != "-")
        and "--dry-run" not in options
        and any("f" in each for each in options if each[1:2] != "-" or each == "--force")
    ),
    "rebase": lambda rest, _, __: rest[:1] not in (["--abort"], ["--quit"], ["--show-current-patch"]),
    # A merge changes files but loses none. `pull --rebase` checks out another commit, and then applies the local
    # commits again.
    "pull": lambda rest, _, __: any(
        word in {"-r", "--rebase"} or (word.startswith("--rebase=") and word[9:] not in {"false", "no"})
        for word in rest
    ),
    "read-tree": lambda _, options, __: any("u" in each for each in options if each[1:2] != "-"),
    "checkout-index": lambda _, options, __: (
        "--force" in options or any("f" in each for each in options if each[1:2] != "-")
    ),
    "sparse-checkout": lambda rest, _, __: rest[:1] in (["set"], ["init"], ["reapply"]),
}


def removed_directories(command: Simple) -> list[str]:
    """Return the paths that `rm -r` or `mv` removes with their whole content."""
    if command.elsewhere is not None or program_name(command) not in {"rm", "mv"}:
        return []
    words = [word for word in command.words[1:] if word.text != "--"]
    options = {word.text.partition("=")[0] for word in words if word.text.startswith("-")}
    operands = [word for word in words if not word.text.startswith("-")]
    letters = {letter for each in options if each[1:2] != "-" for letter in each[1:]}
    if program_name(command) == "rm":
        gone = operands if letters & {"r", "R"} or "--recursive" in options else []
    else:
        gone = operands if "t" in letters or "--target-directory" in options else operands[:-1]
    return [join(command.directory, path) for word in gone if word.literal and (path := _without_star(word.text))]


def _without_star(path: str) -> str:
    """Return a path without the `/*` at its end.

    The result is an empty string if the path has other wildcards.
    """
    path = "." if path == "*" else path.removesuffix("/*")
    return "" if any(letter in path for letter in "*?[") else path


class _State:
    """The earlier changes of a command text that a later command may undo.

    They are kept for each directory.
    """

    def __init__(self) -> None:
        self.stashed: set[str] = set()
        self.popped: set[str] = set()
        self.moved: set[str] = set()
        self.turned: set[str] = set()
        self.applied: set[str] = set()
        self.edited: set[str] = set()
        self.copies: set[tuple[str, str]] = set()
        self.archives: set[str] = set()
        self.removed: set[str] = set()
        """Paths that earlier commands removed with their whole content."""

    def closes(self, command: Simple) -> bool:
        """Record a command. Return whether it restores files changed earlier."""
        words = [word.text for word in command.words]
        name, here = program_name(command), command.directory
        if name == "git":
            return self._git(_without_options(words[1:]), here)
        if name in {"mv", "cp", "ln"}:
            return self._copy([join(command.directory, word) for word in words[1:] if not word.startswith("-")])
        if name == "rm":
            self.removed.update(removed_directories(command))
        if name == "tar":
            return self._tar(words[1:], here)
        if name == "patch" or (name in {"sed", "perl"} and any(word.startswith(("-i", "-pi")) for word in words)):
            is_back = here in self.applied and bool({"-R", "--reverse"} & set(words))
            self.edited.add(here)
            if name == "patch":
                self.applied.add(here)
            return is_back
        return False

    def _git(self, words: list[str], here: str) -> bool:
        verb, rest = (words[0], words[1:]) if words else ("", [])
        if verb == "bisect" and rest[:1] == ["run"]:
            return True  # each step of `bisect run` checks out another commit
        if verb == "rebase" and any(word in {"-x", "--exec"} or word.startswith("--exec=") for word in rest):
            return True
        if verb == "stash":
            return self._stash(rest, here)
        if verb in _RESTORES and (verb != "checkout" or "-b" not in rest):
            is_named = verb in {"checkout", "restore"} and any(join(here, word) in self.removed for word in rest)
            if here in self.edited or is_named:
                return True
        if verb in _TURNS and (verb != "reset" or "--hard" in rest):
            is_back = here in self.turned and (verb == "reset" or "--abort" in rest)
            self.turned.add(here)
            return is_back
        if verb in _MOVES:
            is_back = here in self.moved
            self.moved.add(here)
            return is_back
        if verb == "apply":
            is_back = here in self.applied and bool({"-R", "--reverse"} & set(rest))
            self.applied.add(here)
            return is_back
        return False

    def _stash(self, words: list[str], here: str) -> bool:
        if words[:1] in (["pop"], ["apply"]):
            self.popped.add(here)
            return here in self.stashed
        if words[:1] in ([], ["push"], ["save"]) or words[0].startswith("-"):
            self.stashed.add(here)
            return here in self.popped  # `trap 'git stash pop' EXIT` stands before the stash that it restores
        return False

    def _tar(self, words: list[str], here: str) -> bool:
        """Record an archive that `tar` makes. Return whether `tar` restores removed files."""
        letters, archive = "", ""
        for at, word in enumerate(words):
            if word.startswith("--file="):
                archive = join(here, word.removeprefix("--file="))
            elif (at == 0 or word.startswith("-")) and not word.startswith("--"):
                letters += word
                archive = join(here, words[at + 1]) if "f" in word and at + 1 < len(words) else archive
        if "c" in letters or "--create" in words:
            self.archives.add(archive)
            return False
        is_unpacked = "x" in letters or bool({"--extract", "--get"}.intersection(words))
        return is_unpacked and bool(self.removed) and archive in self.archives

    def _copy(self, paths: list[str]) -> bool:
        if len(paths) != 2:
            return False
        source, target = paths
        if (target, source) in self.copies:
            return True
        self.copies.add((source, target))
        return False


def _without_options(words: list[str]) -> list[str]:
    """Return the words of a git call from its subcommand on."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in {"-C", "-c", "--git-dir", "--work-tree"} else 1
    return words[at:]
