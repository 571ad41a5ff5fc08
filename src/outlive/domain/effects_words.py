"""What a task touched, in words."""

from __future__ import annotations

from outlive.domain.quantity import show_duration
from outlive.domain.when import timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.domain.effects import Effects


def summary_of(effects: Effects, now: datetime) -> str:
    """All of it in one sentence."""
    if effects.level == "unknown":
        return "what it touched is not known" + (f": {effects.why_unseen}" if effects.why_unseen else "")
    if effects.level == "compared":
        return f"{effects.moved or 'the repository is as it was before'} (compared only: {effects.why_unseen})"
    words = [
        f"{_files(len(window.paths))} not as it found them, for {show_duration(now - window.opened_at)} now"
        f" ({window.by[:60]})"
        for window in effects.windows
        if window.is_open
    ]
    if effects.restored:
        closed = [window for window in effects.windows if window.closed_at is not None]
        span = sum((w.closed_at - w.opened_at for w in closed if w.closed_at is not None), timedelta())
        words.append(f"{_files(len(effects.restored))} changed and restored, window {show_duration(span)}")
    words += [f"{_files(len(effects.changed))} changed"] * bool(effects.changed)
    words += [f"{_files(len(effects.created))} created"] * bool(effects.created)
    words += [f"git: {_few(sorted({what for _, what, _ in effects.git}))}"] * bool(effects.git)
    words += [f"{_files(len(effects.outside))} outside of the project"] * bool(effects.outside)
    words += [f"connected to {_few(effects.remotes)}"] * bool(effects.remotes)
    said = "; ".join(words) or "nothing shared was touched"
    return f"{said} (a lower bound: {effects.gaps[0]})" if effects.gaps else said


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"
