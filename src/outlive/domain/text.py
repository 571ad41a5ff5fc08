"""Text for people, terminals and JSON: untrusted bytes made harmless, values made writable."""

from __future__ import annotations

from _json import encode_basestring_ascii as _quoted
from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# C0 but tab and newline, DEL and C1, then what reorders or hides text: bidirectional controls,
# zero-width characters, tag characters, line and paragraph separators, the byte order mark.
_INVISIBLE = (
    *range(0x9),
    *range(0xB, 0x20),
    *range(0x7F, 0xA0),
    0xAD,
    0x61C,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    # fillers, joiners and selectors that show nothing and can carry a message all the same
    *(0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFFA0),
    *range(0xFE00, 0xFE10),
    *range(0xE0000, 0xE0080),
    *range(0xE0100, 0xE01F0),
)
_STRIP = dict.fromkeys(_INVISIBLE)


class _Reading:
    """How JSON is read: as `json` reads it unless told otherwise."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    parse_constant = float


_scan = make_scanner(_Reading)  # type: ignore[arg-type]


def plain(text: str) -> str:
    """The text without escape sequences, control, invisible or reordering characters."""
    if "\x1b" in text or "\x9b" in text:
        text = "".join(_without_escapes(text))
    return text.translate(_STRIP).encode("utf-8", "backslashreplace").decode("utf-8")


def shown(text: str) -> str:
    """The text as anybody may see it: harmless, and without the secrets in it."""
    from outlive.domain.redaction import redact  # noqa: PLC0415 - a launch shows nothing

    return redact(plain(text))


def masked(text: str) -> str:
    """The text as it is, but without the secrets in it; for readers that want escape sequences too.

    If a colour stands in the middle of a secret, only the text without colours can be masked.
    """
    from outlive.domain.redaction import redact  # noqa: PLC0415 - a launch shows nothing

    kept = redact(text)
    bare = plain(kept)
    return kept if redact(bare) == bare else redact(plain(text))


def is_encodable(text: str) -> bool:
    """Whether the text came from bytes, or could become them; a lone surrogate did not and cannot."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


# So much of a text is looked at beyond what may be shown of it; masks and spaces make it shorter.
_BEYOND_WIDTH = 2000


def one_line(text: str, width: int) -> str:
    """The text as one harmless line of at most `width` characters.

    Of a long text only the beginning is looked at: to mask what is not shown would take longer than a client waits.
    """
    most = 4 * max(width, 0) + _BEYOND_WIDTH
    flat = " ".join(shown(text[:most]).split())
    if len(text) > most:  # what was cut off may have been the end of a secret
        flat = (flat.rpartition(" ")[0] or flat) + "…"
    return flat if len(flat) <= width else flat[: width - 1] + "…" if width > 0 else ""


def _without_escapes(text: str) -> Iterator[str]:
    """The text between ECMA-48 sequences: CSI to its final byte, strings to their terminator.

    Whatever is not well formed ends where it stops being so: an escape must not swallow a line.
    """
    at, end = 0, len(text)
    while at < end:
        mark = min((p for p in (text.find("\x1b", at), text.find("\x9b", at)) if p >= 0), default=end)
        yield text[at:mark]
        if mark == end:
            return
        is_csi = text[mark] == "\x9b"
        kind = "[" if is_csi else text[mark + 1 : mark + 2]
        at = mark + (1 if is_csi or not " " <= kind <= "~" else 2)
        if kind == "[":
            while at < end and " " <= text[at] <= "?":
                at += 1
            at += at < end and "@" <= text[at] <= "~"
        elif kind and kind in "]PX^_":
            stops = [p for stop in ("\x07", "\x1b\\", "\x9c", "\n") if (p := text.find(stop, at)) >= 0]
            at = min(stops, default=end)
            at += 2 if text.startswith("\x1b\\", at) else text[at : at + 1] in ("\x07", "\x9c")


def to_json(value: object) -> str:
    """JSON, written without `json`: importing that costs two thirds of an interpreter start.

    ASCII only, so that lone surrogates (undecodable bytes of arguments) survive as escapes.
    """
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float) and value - value != 0:
        return "null"  # JSON has no word for infinity, nor for what is not a number
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(str(k))}: {to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(to_json, value)) + "]"
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def from_json(text: str) -> object:
    """The value of a JSON text, read by the C half of `json`: the other half, with `re`, is only there for errors."""
    begin = len(text) - len(text.lstrip(" \t\n\r"))
    try:
        value, end = _scan(text, begin)
    except (StopIteration, SystemError):
        value, end = None, -1
    if end < 0 or text[end:].strip(" \t\n\r"):
        from json import loads  # noqa: PLC0415 - it says what is wrong

        parsed: object = loads(text)
        return parsed
    return value
