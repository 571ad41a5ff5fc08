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
    from typing import Any, Self

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
        def act() -> R:
            _wait_for_closing()
            return method(self._sync, *given, **named)

        return await asyncio.to_thread(act)

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

    def follow(self) -> AsyncIterator[NoticeDocument]:
        """Yield the session's notices as they come.

        A notice counts as presented when the caller asks for the next one. If the caller leaves the loop before, the
        notice stays pending.
        """
        return _Each(self._sync.follow)


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

    def follow(self, task: Task, /, *, since: int = 0) -> AsyncIterator[bytes]:
        """Yield the task's output as it is written, until the task has ended."""
        return _Each(partial(task.follow, since=since))

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


# The threads of iterators whose caller has stopped between two items. A thread ends as soon as its iterator is closed.
_closing: set[threading.Thread] = set()


def _wait_for_closing() -> None:
    """Wait until the iterators that callers have left are closed.

    An iterator over notices reserves the notice that its caller got last. If the next call did not wait, it would not
    get this notice.
    """
    for thread in tuple(_closing):
        thread.join()
        _closing.discard(thread)


class _Each(Generic[R]):
    """An asynchronous iterator over the items of a blocking iterator.

    Each item is requested only when the caller needs it. The iterator runs in a daemon thread of its own. A thread of
    the event loop's pool would keep the program from exiting until the next item comes.

    This is a class and not an asynchronous generator. If a caller leaves its loop with `break`, Python deletes this
    object at once, and `__del__` closes the iterator. The event loop would close a generator only later, in a task of
    its own.
    """

    def __init__(self, begin: Callable[[], Iterator[R]]) -> None:
        self._begin = begin
        self._thread: threading.Thread | None = None
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._found: asyncio.Queue[tuple[list[R], BaseException | None]] = asyncio.Queue()
        self._is_paused = False
        """Whether the caller has an item, and has not requested the next one."""
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> R:
        if self._is_over:
            raise StopAsyncIteration
        if self._thread is None:
            # The thread must not refer to this object. Otherwise Python would not delete this object.
            given = (self._begin, asyncio.get_running_loop(), self._wanted, self._found)
            self._thread = threading.Thread(target=_pass_on_items, args=given, daemon=True)
            self._thread.start()
        self._is_paused = False
        self._wanted.put(True)
        try:
            items, error = await self._found.get()
            if error is not None:
                raise error
        except BaseException:
            self._close()
            raise
        if not items:
            self._close()
            raise StopAsyncIteration
        self._is_paused = True
        return items[0]

    async def aclose(self) -> None:
        """Close the iterator. Further requests yield no item."""
        self._close()
        await asyncio.to_thread(_wait_for_closing)

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        """Let the thread close the iterator, without waiting for this."""
        if self._is_over:
            return
        self._is_over = True
        if self._thread is not None and self._is_paused:
            # If the thread waits for an item instead, it has reserved nothing, and may wait for long.
            _closing.add(self._thread)
        self._wanted.put(False)


def _pass_on_items(
    begin: Callable[[], Iterator[R]],
    loop: asyncio.AbstractEventLoop,
    wanted: SimpleQueue[bool],
    found: asyncio.Queue[tuple[list[R], BaseException | None]],
) -> None:
    """Pass on one item of an iterator for each request, and then close the iterator."""

    def pass_on(items: list[R], error: BaseException | None = None) -> None:
        try:
            loop.call_soon_threadsafe(found.put_nowait, (items, error))
        except RuntimeError:
            pass  # the event loop is closed, so no coroutine waits for the item

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
