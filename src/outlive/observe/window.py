"""Windows that a text foretells: something shared is changed, and put back later in the same text."""

from __future__ import annotations

from outlive.observe.shell import join, program_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlive.observe.shell import Simple

_MOVES = frozenset(("checkout", "switch"))
# What these do, `--abort` undoes, or a hard reset.
_TURNS = frozenset(("merge", "revert", "cherry-pick", "rebase", "am", "pull", "reset"))
_RESTORES = frozenset(("checkout", "restore", "stash", "reset"))
# Without one of these letters in it no text is worth reading for a window.
_LETTERS = (
    *("stash", "checkout", "switch", "restore", "bisect", "rebase", "reset", "abort", "apply", "patch"),
    *("mv ", "cp ", "ln "),
)


def may_open(text: str) -> bool:
    """Whether a text may foretell a window, by its letters alone: to read it is dear."""
    return any(letters in text for letters in _LETTERS)


def opens_window(commands: Iterable[Simple]) -> bool:
    """Whether the commands, in their order, take something away and bring it back."""
    state = _State()
    return any(state.closes(command) for command in commands if command.words and command.elsewhere is None)


class _State:
    """What has been taken away so far, and in which directories."""

    def __init__(self) -> None:
        self.stashed: set[str] = set()
        self.popped: set[str] = set()
        self.moved: set[str] = set()
        self.turned: set[str] = set()
        self.applied: set[str] = set()
        self.edited: set[str] = set()
        self.copies: set[tuple[str, str]] = set()

    def closes(self, command: Simple) -> bool:
        """Take note of a command; whether it brings something back."""
        words = [word.text for word in command.words]
        name, here = program_name(command), command.directory
        if name == "git":
            return self._git(_without_options(words[1:]), here)
        if name in {"mv", "cp", "ln"}:
            return self._copy([join(command.directory, word) for word in words[1:] if not word.startswith("-")])
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
            return True  # every step of it checks something else out
        if verb == "rebase" and any(word in {"-x", "--exec"} or word.startswith("--exec=") for word in rest):
            return True
        if verb == "stash":
            return self._stash(rest, here)
        if verb in _RESTORES and here in self.edited and (verb != "checkout" or "-b" not in rest):
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
            return here in self.popped  # `trap 'git stash pop' EXIT` stands before what it undoes
        return False

    def _copy(self, paths: list[str]) -> bool:
        if len(paths) != 2:
            return False
        source, target = paths
        if (target, source) in self.copies:
            return True
        self.copies.add((source, target))
        return False


def _without_options(words: list[str]) -> list[str]:
    """The words of a git call from its verb on."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in {"-C", "-c", "--git-dir", "--work-tree"} else 1
    return words[at:]
