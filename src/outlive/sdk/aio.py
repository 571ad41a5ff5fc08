"""The SDK for asyncio, which calls the synchronous SDK.

Its methods are made from those of the synchronous classes, so they have the same arguments and results. Short calls run
in the event loop's thread pool. Waiting for a task uses no thread: the kernel reports the end of the task on a FIFO,
and the event loop watches this FIFO.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from functools import partial, wraps
from queue import SimpleQueue
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, TypeVar

from outlive.bundle.attempt import has_writer
from outlive.sdk.outlive import Outlive, Task, seconds_of
from outlive.sdk.session import Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from typing import Any

    from outlive.sdk.documents import NoticeDocument
    from outlive.sdk.outlive import Span

_SETTLING_PAUSE = 0.02

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


class _OfSync(Generic[S]):
    """The base of an asyncio class whose methods call a synchronous object."""

    _sync: S


def _called(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[_OfSync[S], P], Coroutine[Any, Any, R]]:
    """Return a coroutine function that runs a method of the object in a thread."""

    @wraps(method)
    async def call(self: _OfSync[S], /, *given: P.args, **named: P.kwargs) -> R:
        return await asyncio.to_thread(partial(method, self._sync, *given, **named))

    return call


def _of_task(
    method: Callable[Concatenate[Task, P], R],
) -> Callable[Concatenate[_OfSync[Outlive], Task, P], Coroutine[Any, Any, R]]:
    """Return a coroutine function that calls a method of `Task` in a thread.

    The task is the first argument of the coroutine function.
    """

    @wraps(method)
    async def call(_: _OfSync[Outlive], task: Task, /, *given: P.args, **named: P.kwargs) -> R:
        return await asyncio.to_thread(partial(method, task, *given, **named))

    call.__signature__ = _with_task(method)  # type: ignore[attr-defined]
    return call


def _with_task(method: Callable[..., object]) -> inspect.Signature:
    """Return the signature of a method of `Task`, with the task as its first argument."""
    found = inspect.signature(method)
    own, *others = found.parameters.values()
    task = inspect.Parameter("task", inspect.Parameter.POSITIONAL_ONLY, annotation="Task")
    return found.replace(parameters=[own.replace(kind=inspect.Parameter.POSITIONAL_ONLY), task, *others])


class AsyncSession(_OfSync[Session]):
    """The methods of `Session` as coroutines."""

    def __init__(self, session: Session) -> None:
        self._sync = session
        self.name = session.name
        self.project = session.project

    begin = _called(Session.begin)
    end = _called(Session.end)
    edited = _called(Session.edited)
    inbox = _called(Session.inbox)
    peek = _called(Session.peek)
    acknowledge = _called(Session.acknowledge)
    dismiss = _called(Session.dismiss)
    gate = _called(Session.gate)

    async def follow(self) -> AsyncIterator[NoticeDocument]:
        """Yield the session's notices as they come.

        A notice counts as presented when the caller asks for the next one.
        """
        async for notice in _each(self._sync.follow):
            yield notice


class AsyncOutlive(_OfSync[Outlive]):
    """The methods of `Outlive` and of `Task` as coroutines.

    The methods of `Task` take the task as their first argument.
    """

    def __init__(
        self, *, home: str | None = None, session: str | None = None, project: str | os.PathLike[str] | None = None
    ) -> None:
        """Create the object. The arguments are those of `Outlive`."""
        self._sync = Outlive(home=home, session=session, project=project)

    run = _called(Outlive.run)
    agent = _called(Outlive.agent)
    task = _called(Outlive.task)
    tasks = _called(Outlive.tasks)
    cancel = _called(Outlive.cancel)
    transcript = _called(Outlive.transcript)
    refresh = _of_task(Task.refresh)
    send = _of_task(Task.send)
    retry = _of_task(Task.retry)
    output = _of_task(Task.output)

    def session(self, name: str | None = None, *, project: str | os.PathLike[str] | None = None) -> AsyncSession:
        """Return an agent session of a project.

        `name` is the name that the agent client has given the session.
        """
        return AsyncSession(self._sync.session(name, project=project))

    async def follow(self, task: Task, /, *, since: int = 0) -> AsyncIterator[bytes]:
        """Yield the task's output as it is written, until the task has ended."""
        async for piece in _each(partial(task.follow, since=since)):
            yield piece

    async def wait(self, *tasks: Task, any_one: bool = False, timeout: Span = None) -> bool:  # noqa: ASYNC109 - the synchronous `wait` has this argument too
        """Wait until all tasks have ended, or with `any_one` until one of them has ended.

        Returns False if the timeout was over before.
        """
        waiting = [asyncio.ensure_future(_until_ended(task)) for task in tasks]
        when = asyncio.FIRST_COMPLETED if any_one else asyncio.ALL_COMPLETED
        seconds = seconds_of(timeout)
        if not waiting:
            return True
        try:
            done, pending = await asyncio.wait(waiting, timeout=seconds, return_when=when)
        finally:
            for one in waiting:
                one.cancel()
        for one in done:
            one.result()
        return bool(done) if any_one else not pending


async def _until_ended(task: Task) -> None:
    while not (await asyncio.to_thread(task.refresh)).has_ended:
        await _until_let_go(task)


async def _until_let_go(task: Task) -> None:
    """Wait until no process has a task's FIFO open any more. The task has ended then."""
    done = task.open_done()
    try:
        if not has_writer(done):
            await asyncio.sleep(_SETTLING_PAUSE)
            return
        loop = asyncio.get_running_loop()
        let_go = asyncio.Event()
        loop.add_reader(done, let_go.set)
        try:
            await let_go.wait()
        finally:
            loop.remove_reader(done)
    finally:
        os.close(done)


async def _each(begin: Callable[[], Iterator[R]]) -> AsyncIterator[R]:
    """Yield the items of a blocking iterator.

    Each item is requested only when the caller needs it. The iterator runs in a daemon thread of its own. A thread of
    the event loop's pool would keep the program from exiting until the next item comes.
    """
    loop = asyncio.get_running_loop()
    wanted: SimpleQueue[bool] = SimpleQueue()
    found: asyncio.Queue[tuple[list[R], BaseException | None]] = asyncio.Queue()

    def pass_on(items: list[R], error: BaseException | None = None) -> None:
        try:
            loop.call_soon_threadsafe(found.put_nowait, (items, error))
        except RuntimeError:
            pass  # the event loop is closed, so no coroutine waits for the item

    def ask() -> None:
        items = begin()
        try:
            while wanted.get():
                pass_on([next(items)])
        except StopIteration:
            pass_on([])
        except BaseException as error:  # noqa: BLE001 - the coroutine that iterates raises the error again
            pass_on([], error)
        finally:
            items.close()  # type: ignore[attr-defined]  # `items` is a generator, because every `begin` returns one

    threading.Thread(target=ask, daemon=True).start()
    try:
        while True:
            wanted.put(True)
            items, error = await found.get()
            if error is not None:
                raise error
            if not items:
                return
            yield items[0]
    finally:
        wanted.put(False)
