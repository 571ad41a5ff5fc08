"""The programs that run other commands: shells, and wrappers such as `sudo`.

This module contains only data, so that hooks and keepers can load it fast.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypedDict

    class Wrapper(TypedDict, total=False):
        """A program that runs a command, which follows the program's options and operands."""

        takes: str
        """The options whose value is the next word."""
        operands: int
        """The number of operands between the options and the command."""
        directory: str
        """The options that change the directory."""
        writes: str
        """The options whose values are files that the program writes."""
        reads: str
        """The options whose values are files that the program reads."""
        detaches: bool
        """Whether the command continues after the terminal, or the shell that started it, has ended."""
        supplies: bool
        """Whether the program adds words of its own to the command."""
        is_text: bool
        """Whether the program joins the words of the command to one string, which a shell runs."""
        is_below: bool
        """Whether the command runs in directories that its text does not name.

        They are below the current directory.
        """
        elsewhere: Literal["container", "remote"]
        """The kind of place in which the command runs, such as a container.

        The operand before the command names the place.
        """


POSIX_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")
"""The shells whose commands can be parsed with the grammar of bash."""
SHELLS = (*POSIX_SHELLS, "fish")

OPENING_KEYWORDS = ("if", "then", "elif", "else", "do", "while", "until", "!", "{")
"""The words of the shell language that stand before a command, such as `if`."""
CLOSING_KEYWORDS = ("fi", "done", "esac", "}")
"""The words of the shell language that end a compound command, such as `fi`."""

_PLAIN: Wrapper = {}
_TIMEOUT: Wrapper = {"takes": "-s -k --signal --kill-after", "operands": 1}
_CONDA: Wrapper = {"takes": "-n -p --name --prefix --cwd", "directory": "--cwd"}
_NODE: Wrapper = {"takes": "-p --package"}
_CONTAINER: Wrapper = {
    "takes": "-e -u -w -c -n --env --user --workdir --container --namespace --index --detach-keys",
    "operands": 1,
    "elsewhere": "container",
}

# The wrappers by name, or by name and subcommand. An entry describes only how the wrapper runs its command.
WRAPPERS: dict[str, Wrapper] = {
    "sudo": {
        "takes": "-u -g -h -p -C -D -R -r -t -T -U --user --group --host --prompt --chdir",
        "directory": "-D --chdir",
    },
    "doas": {"takes": "-u -C"},
    "pkexec": {"takes": "--user"},
    "runuser": {"takes": "-u -g -G --user --group --supp-group"},
    "env": {"takes": "-u -C --unset --chdir", "directory": "-C --chdir"},
    "nohup": {"detaches": True},
    "setsid": {"detaches": True},
    "systemd-run": {"takes": "-p -u -t --unit --property", "detaches": True},
    "exec": {"takes": "-a"},
    "nice": {"takes": "-n --adjustment"},
    "ionice": {"takes": "-c -n -p --class --classdata"},
    "chrt": {"operands": 1},
    "taskset": {"operands": 1},
    **dict.fromkeys(("timeout", "gtimeout"), _TIMEOUT),
    "time": {"takes": "-f -o --format --output", "writes": "-o --output"},
    "stdbuf": {"takes": "-i -o -e --input --output --error"},
    "strace": {"takes": "-e -o -p -s -E -u --output", "writes": "-o --output"},
    "watch": {"takes": "-n --interval", "is_text": True},
    "chroot": {"takes": "--userspec --groups", "operands": 1},
    "xvfb-run": {"takes": "-n -s -e --server-num --server-args"},
    "flock": {"takes": "-w -E --timeout", "operands": 1},
    "xargs": {
        "takes": "-I -n -P -d -L -s -a -E --max-args --max-procs --delimiter --replace --arg-file --max-lines",
        "reads": "-a --arg-file",
        "supplies": True,
    },
    "parallel": {
        "takes": "-j -S -a -C --jobs --joblog --results --arg-file",
        "reads": "-a --arg-file",
        "writes": "--joblog",
        "supplies": True,
    },
    "ssh": {
        "takes": "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
        "operands": 1,
        "is_text": True,
        "elsewhere": "remote",
    },
    **dict.fromkeys(("docker exec", "podman exec"), _CONTAINER),
    **dict.fromkeys(("docker compose exec", "podman compose exec", "docker-compose exec"), _CONTAINER),
    "kubectl exec": {**_CONTAINER, "elsewhere": "remote"},
    **dict.fromkeys(("npx", "npm exec", "pnpm exec", "pnpm dlx", "yarn exec", "yarn dlx"), _NODE),
    "uvx": {"takes": "--from --with -p --python"},
    "uv run": {
        "takes": "-p --python --with --extra --group --directory --project --env-file",
        "directory": "--directory",
    },
    **dict.fromkeys(("conda run", "mamba run", "micromamba run"), _CONDA),
    "direnv exec": {"operands": 1},
    "git submodule foreach": {"is_text": True, "is_below": True},
    **dict.fromkeys(("command", "builtin", "coproc", "unbuffer", "caffeinate", "fakeroot", "busybox"), _PLAIN),
    **dict.fromkeys(("python -m", "python3 -m", "poetry run", "pipenv run", "pdm run", "pipx run"), _PLAIN),
    **dict.fromkeys(("bundle exec", "dotenv run", "bunx"), _PLAIN),
}
