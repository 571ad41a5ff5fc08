"""The types of the JSON documents that the SDK returns and `--json` prints."""

from __future__ import annotations

from typing import NotRequired, TypedDict

# Each type has all fields of its JSON document. A test compares the types with real documents.


class OutputDocument(TypedDict):
    """The output of a task."""

    path: str
    bytes: int
    dropped_bytes: int
    truncated: bool
    tail: str


# One of the fields is called `class`, which is a keyword of Python. So these two types cannot be written as classes.
AgentAttemptDocument = TypedDict(
    "AgentAttemptDocument",
    {
        "client": "str",
        "model": "str | None",
        "session": "str | None",
        "class": "str | None",
        "error": "str | None",
        "turns": "int",
        "cost_usd": "float | None",
    },
)
AgentAttemptDocument.__doc__ = """One attempt of an agent: its client and model, and how the attempt ended."""

AgentDocument = TypedDict(
    "AgentDocument",
    {
        "client": "str",
        "model": "str | None",
        "session": "str | None",
        "class": "str | None",
        "turns": "int",
        "calls": "int",
        "tokens": "dict[str, int | None]",
        "cost_usd": "float | None",
        "denied": "list[str]",
        "answer": "str | None",
        "question": "str | None",
        "error": "str | None",
        "progress": "str | None",
        "category": "str | None",
        "unstable": "bool",
        "worktree": "str | None",
        "branch": "str | None",
    },
)
AgentDocument.__doc__ = """The newest attempt of an agent, with its final answer."""


class AttemptDocument(TypedDict):
    """One attempt of a task: one run of its command."""

    number: int
    state: str
    exit_code: int | None
    signal: int | None
    reason: str | None
    started_at: str | None
    settled_at: str | None
    duration_s: float | None
    settled_by: str | None
    agent: AgentAttemptDocument | None


class LeftRunningDocument(TypedDict):
    """A process of a task that was still running when the task's command had ended."""

    pid: int
    command: str


class GitDocument(TypedDict):
    """The state of a git repository before and after a task."""

    repo: str
    branch: str | None
    head_before: str | None
    head_after: str | None


class WindowDocument(TypedDict):
    """A time span in which files differed from what a task found when it started."""

    scope: str
    paths: list[str]
    paths_below: NotRequired[dict[str, int]]
    paths_in_all: int
    paths_uncompared: int
    opened_at: str
    closed_at: str | None
    duration_s: float | None
    restored: bool | None
    left: bool
    by: str


class GitMoveDocument(TypedDict):
    """One operation of a task on a git repository, such as a commit."""

    at: str | None
    what: str
    by: str


class UnattributedDocument(TypedDict):
    """A changed file of which no process of the task was seen to change it."""

    path: str
    how: str


class EffectsDocument(TypedDict):
    """What a task changed."""

    level: str
    shared: bool
    summary: str
    windows: list[WindowDocument]
    windows_in_all: int
    possible_windows: list[WindowDocument]
    paths_changed: int
    paths_restored: int
    changed: list[str]
    changed_below: NotRequired[dict[str, int]]
    gone: list[str]
    gone_below: NotRequired[dict[str, int]]
    created: list[str]
    created_below: NotRequired[dict[str, int]]
    restored: list[str]
    restored_below: NotRequired[dict[str, int]]
    rewritten: list[str]
    rewritten_below: NotRequired[dict[str, int]]
    git: list[GitMoveDocument]
    git_in_all: int
    outside: list[str]
    outside_below: NotRequired[dict[str, int]]
    remotes: list[str]
    remotes_in_all: int
    unattributed: list[UnattributedDocument] | None
    unattributed_in_all: int | None
    moved: str | None
    gaps: list[str]
    uncompared: list[str]
    unobserved_since: str | None
    why_unseen: str | None


class AdoptedDocument(TypedDict):
    """A process that was turned into a task, and the file with its output."""

    pid: int
    output: str | None


class WaitingForDocument(TypedDict):
    """What a queued task waits for: tasks, names or a time.

    `names` are those that were given with `--lock` and `--slots`.
    """

    tasks: list[str]
    names: list[str]
    until: str | None
    text: str


class TaskDocument(TypedDict):
    """A task."""

    id: str
    kind: str
    description: str | None
    command: str
    argv: list[str]
    cwd: str
    state: str
    exit_code: int | None
    signal: int | None
    reason: str | None
    detail: str | None
    condition: str | None
    session: str | None
    lineage: str | None
    project: str
    group: str | None
    parent: str | None
    key: str | None
    mode: str
    engine: str
    host: str
    attempt: int
    attempts: list[AttemptDocument]
    created_at: str
    started_at: str | None
    ended_at: str | None
    settled_at: str | None
    duration_s: float | None
    delete_after: str | None
    output: OutputDocument
    git: GitDocument | None
    agent: AgentDocument | None
    waiting_for: WaitingForDocument | None
    ports: dict[str, int]
    effects: EffectsDocument
    left_running: list[LeftRunningDocument]
    settled_by: str | None
    adopted: AdoptedDocument | None


class DriftDocument(TypedDict):
    """What has changed in files and repositories since a task ended."""

    moved: bool
    summary: str
    details: list[str]


class ForeignCommandDocument(TypedDict):
    """A background command that a client itself ran while a task ran.

    It is not known which files this command wrote.
    """

    client: str
    id: str
    command: str
    cwd: str | None


class OverlapDocument(TypedDict):
    """Another task, a session or a client that changed files in a task's directories.

    The changes were made while the task ran.
    """

    task: str | None
    session: str | None
    paths: list[str]
    paths_in_all: int
    foreign: ForeignCommandDocument | None
    since: str | None
    until: str | None
    windows: list[WindowDocument]
    windows_in_all: int
    by_text: str | None


class TaskOfHandOff(TaskDocument):
    """A task in a hand-off."""

    earlier_session: bool
    drift: DriftDocument | None
    overlap: list[OverlapDocument]


class ForeignDocument(TypedDict):
    """A background command or a child session that a client itself runs."""

    client: str
    kind: str
    id: str
    command: str
    description: str | None
    cwd: str | None
    output: str | None
    written_at: str | None
    pids: list[int]
    agent: str | None
    parent: str | None
    state: str
    reason: str | None
    seen_at: str


class OpenWindowDocument(WindowDocument):
    """A time span in which files differ from what a task found, and which is not over."""

    task: str


class HandOffDocument(TypedDict):
    """The hand-off of a session that begins or continues. `text` is for the model."""

    running: list[TaskOfHandOff]
    ended: list[TaskOfHandOff]
    lost: list[TaskOfHandOff]
    earlier_more: int
    told_lately: list[str]
    elsewhere: int
    foreign: list[ForeignDocument]
    foreign_elsewhere: list[ForeignDocument]
    open_windows: list[OpenWindowDocument]
    open_windows_more: int
    open_windows_unknown: list[str]
    text: str


class MemberDocument(TypedDict):
    """One task of a group. The group is reported after all of its tasks have ended."""

    id: str
    state: str
    exit_code: int | None


class DeliveryDocument(TypedDict):
    """How far the delivery of a notice has come."""

    state: str
    tries: int
    last_error: str | None


class NoticeDocument(TypedDict):
    """A notice to a session. `text` is for the model."""

    id: str
    kind: str
    task: TaskDocument
    attempt: int
    remaining: int
    session_running: int
    session_tasks: int
    members: list[MemberDocument]
    covers: list[str]
    crossed_boundary: bool
    launched_by: str | None
    drift: DriftDocument | None
    overlap: list[OverlapDocument]
    delivery: DeliveryDocument
    text: str


class ServerDocument(TypedDict):
    """A running task that listens on a network port."""

    task: str
    port: int


class GateDocument(TypedDict):
    """Whether a session may stop now, and the reasons."""

    may_stop: bool
    reason: str
    running: list[TaskDocument]
    unknown: list[str]
    lost: list[TaskDocument]
    untold: list[NoticeDocument]
    untold_more: int
    children: list[ForeignDocument]
    servers: list[ServerDocument]
    open_windows: list[OpenWindowDocument]
    open_windows_more: int
    open_windows_unknown: list[str]


# One of the fields is called `class`, which is a keyword of Python. So this type cannot be written as a class.
EntryAgentDocument = TypedDict(
    "EntryAgentDocument",
    {"client": "str", "model": "str | None", "session": "str | None", "class": "str | None", "state": "str"},
)
EntryAgentDocument.__doc__ = "Client, model and session of an agent's attempt, and how the attempt ended."


class EntryDocument(TypedDict):
    """One entry of a transcript.

    It is a message, a tool call with its result, or a remark that Outlive has added.
    """

    n: int
    attempt: int
    at: str | None
    role: str
    kind: str
    text: str
    tool: str | None
    input: object
    result: str | None
    call: int | None
    is_error: bool
    sub_agent: bool
    partial: bool
    agent: EntryAgentDocument | None


class TranscriptDocument(TypedDict):
    """A part of the transcript of an agent task."""

    task: str
    entries: list[EntryDocument]
    next: int
    more: bool
