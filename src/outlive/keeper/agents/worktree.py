"""The git worktree of an agent task.

The worktree is added before the launch. At the end of the task, the worktree is removed if nothing in it has changed.
It lies below the state directory, on a branch that is named after the task. A task that continues the session of an
ended task works in the worktree of that task. Outlive runs the git program of the user, but git runs no hook of the
repository.
"""

from __future__ import annotations

import os
from fcntl import LOCK_EX, flock

from outlive.domain.errors import Unavailable, UserError
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from subprocess import CompletedProcess

    from outlive.domain.agents.request import Worktree

_ADD_S, _LOOK_S = 300, 60
# Without these options, a hook or a file-system monitor of the repository would run before the agent, and with the
# rights of the keeper.
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
# If one of these variables were set, git would use the repository that the variable names.
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")


def head_commit(directory: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the top directory and the current commit of a directory's worktree.

    Raises `UserError` if the directory is not in a git repository, or if the repository has no commit.
    """
    found = _git(environ, directory, "rev-parse", "--show-toplevel", "--verify", "HEAD^{commit}")
    lines = found.stdout.splitlines()
    if found.returncode != 0 or len(lines) != 2:
        raise UserError(
            f"{directory} is in no git repository with a commit, so no worktree can be added",
            "leave out --worktree, or make a first commit",
        )
    return lines[0], lines[1]


def add(worktree: Worktree, environ: Mapping[str, str]) -> None:
    """Add the worktree with a new branch.

    Raises `Unavailable` if git fails. The branch is then deleted again.
    """
    os.makedirs(os.path.dirname(worktree.path), 0o700, exist_ok=True)
    words = ("worktree", "add", "--quiet", "-b", worktree.branch, worktree.path, worktree.base)
    done = _git(environ, worktree.repository, *words, timeout=_ADD_S)
    if done.returncode != 0:
        _git(environ, worktree.repository, "worktree", "prune")
        # Git makes the branch before it checks out the files, and keeps the branch if the checkout fails.
        _delete_branch(worktree, environ)
        raise Unavailable(
            f"git could not add the worktree {worktree.path}: {_last_line(done.stderr)}",
            "nothing was started; leave out --worktree, or repair the repository",
        )


def add_again(worktree: Worktree, environ: Mapping[str, str]) -> None:
    """Add the worktree of an ended task again, unless it still exists.

    If its branch still exists, for example with commits of the agent, the branch is checked out. Otherwise the branch
    begins again with the same commit as before. Raises `Unavailable` if git fails.
    """
    above = os.path.dirname(worktree.path)
    os.makedirs(above, 0o700, exist_ok=True)
    # Two callers may continue the same session at this moment. The second caller waits until the first caller's git has
    # checked out all files.
    lock = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flock(lock, LOCK_EX)
        if os.path.isdir(worktree.path):
            return
        # If the directory was deleted without git, git still lists the worktree, and refuses to add it again until this
        # entry is pruned.
        done = _check_out_again(worktree, environ)
        if done.returncode != 0:
            _git(environ, worktree.repository, "worktree", "prune")
            done = _check_out_again(worktree, environ)
    finally:
        os.close(lock)
    if done.returncode != 0:
        raise Unavailable(
            f"git could not add the worktree {worktree.path} again: {_last_line(done.stderr)}",
            "nothing was started; repair the repository, or launch a new agent",
        )


def _check_out_again(worktree: Worktree, environ: Mapping[str, str]) -> CompletedProcess[str]:
    branch = f"refs/heads/{worktree.branch}"
    found = _git(environ, worktree.repository, "rev-parse", "--verify", "--quiet", branch)
    begun = (worktree.path, worktree.branch)
    words = begun if found.returncode == 0 else ("-b", worktree.branch, worktree.path, worktree.base)
    return _git(environ, worktree.repository, "worktree", "add", "--quiet", *words, timeout=_ADD_S)


def has_changed(worktree: Worktree, environ: Mapping[str, str]) -> bool:
    """Return whether the worktree has, or had, commits or changes of its own.

    A worktree that cannot be read counts as changed. A worktree with ignored files counts as changed, because only its
    agent can have made these files. A worktree in which a commit other than its first commit was checked out counts as
    changed, because that commit may be on no branch.
    """
    if not os.path.isdir(worktree.path):
        commit = _git(environ, worktree.repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{worktree.branch}")
        return commit.returncode == 0 and commit.stdout.strip() != worktree.base
    head = _git(environ, worktree.path, "log", "--walk-reflogs", "--format=%H", "HEAD", "--")
    now = _git(environ, worktree.path, "rev-parse", "HEAD")
    branch = _git(environ, worktree.path, "rev-parse", "--verify", "--quiet", f"refs/heads/{worktree.branch}")
    status = _git(environ, worktree.path, "status", "--porcelain=v1", "--untracked-files=normal", "--ignored")
    found = (head, now, branch, status)
    if any(each.returncode != 0 for each in found):
        return True
    heads = {*head.stdout.split(), *now.stdout.split(), *branch.stdout.split()}
    return heads != {worktree.base} or bool(status.stdout)


def remove(worktree: Worktree, environ: Mapping[str, str]) -> bool:
    """Remove an unchanged worktree and its branch. Return whether it is gone."""
    # Without --force, git refuses to remove the worktree if it has changed since the check by `has_changed`.
    done = _git(environ, worktree.repository, "worktree", "remove", worktree.path)
    if done.returncode != 0:
        return not os.path.isdir(worktree.path)
    _delete_branch(worktree, environ)
    return True


def _delete_branch(worktree: Worktree, environ: Mapping[str, str]) -> None:
    """Delete the branch of a worktree, unless it has commits of its own."""
    # With the expected commit, git deletes the branch only if the branch still points to this commit.
    _git(environ, worktree.repository, "update-ref", "-d", f"refs/heads/{worktree.branch}", worktree.base)


def _git(environ: Mapping[str, str], directory: str, *words: str, timeout: float = _LOOK_S) -> CompletedProcess[str]:
    """Run git, and return its output and its exit code.

    The code is 127 if git could not be run.

    A process that ignores SIGCHLD, such as the spawner, gets no exit code of a child process. It would also pass this
    setting on to git, whose own child processes would then seem to fail. So SIGCHLD is not ignored while git runs.
    """
    if signal.getsignal(signal.SIGCHLD) != signal.SIG_IGN:
        return _run_git(environ, directory, words, timeout)
    from subprocess import CompletedProcess  # noqa: PLC0415 - only agents with a worktree need this import

    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    except ValueError:  # only the main thread may change how a signal is handled
        return CompletedProcess(words, 127, "", "this program ignores SIGCHLD, so the exit code of git would be lost")
    try:
        return _run_git(environ, directory, words, timeout)
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        _reap_ended_children()


def _reap_ended_children() -> None:
    """Remove the zombies of children that ended while SIGCHLD was not ignored.

    The kernel reaps only the children that end later. The others would stay zombies until this process exits.
    """
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass  # there is no child process


def _run_git(
    environ: Mapping[str, str], directory: str, words: tuple[str, ...], timeout: float
) -> CompletedProcess[str]:
    from subprocess import DEVNULL, CompletedProcess, TimeoutExpired, run  # noqa: PLC0415 - only agents with a worktree need this import

    own = {name: value for name, value in environ.items() if name not in _ELSEWHERE}
    try:
        return run(
            ("git", *_QUIET, *words),
            cwd=directory,
            env={**own, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
            check=False,
        )
    except (OSError, TimeoutExpired) as error:
        return CompletedProcess(words, 127, "", str(error))


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "git printed no reason")
