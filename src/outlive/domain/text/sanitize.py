"""The conversion of untrusted text into harmless text, and fast JSON functions."""

from __future__ import annotations

from _json import encode_basestring_ascii as _quoted
from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The control characters of ASCII, except tab and newline.
_STRIP_ASCII = dict.fromkeys((*range(0x9), *range(0xB, 0x20), 0x7F))
# The control characters above ASCII, and characters that reorder or hide text: bidirectional controls, zero-width
# characters, tag characters, line and paragraph separators, and the byte order mark. The table of these ranges is made
# only for text that is not ASCII, because the table has thousands of entries and most processes never need it.
_INVISIBLE = (
    range(0x80, 0xA0),
    (0xAD,),
    (0x61C,),
    range(0x200B, 0x2010),
    range(0x2028, 0x202F),
    range(0x2060, 0x2070),
    (0xFEFF,),
    range(0xFFF9, 0xFFFC),
    # format characters of shorthand, then of musical notation
    range(0x1BCA0, 0x1BCA4),
    range(0x1D173, 0x1D17B),
    range(0x13430, 0x13460),  # format characters of hieroglyphs
    # fillers, joiners and selectors, which are invisible and can carry a hidden message
    (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
    range(0x180B, 0x1810),
    range(0xFE00, 0xFE10),
    # tags, further selectors, and reserved code points, which fonts do not show
    range(0xFFF0, 0xFFF9),
    range(0xE0000, 0xE1000),
)
# The empty braille pattern looks like a space. It is replaced by a space and not removed, so that plots of braille
# characters keep their width.
_BLANKS = {0x2800: " "}
_strip: dict[int, str | None] = {}
# The parts of escape sequences: the characters that begin a string, the parameters of a CSI sequence, and the
# intermediate characters, which select a character set.
_STRINGS = "]PX^_"
_INTERMEDIATES = "".join(map(chr, range(0x20, 0x30)))
_PARAMETERS = "".join(map(chr, range(0x20, 0x40)))


class _Reading:
    """The settings of the JSON scanner. They are the defaults of the `json` module."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    parse_constant = float


_scan = make_scanner(_Reading)  # type: ignore[arg-type]


def plain(text: str) -> str:
    """Return the text without escape sequences and invisible or reordering characters."""
    if "\x1b" in text or "\x9b" in text:
        text = "".join(_without_escapes(text))
    if text.isascii():
        return text.translate(_STRIP_ASCII)
    table = _strip_table()
    # Most lines contain nothing to remove. It is much faster to check a line than to translate it.
    lines = text.split("\n")
    text = "\n".join([line if line.isascii() and line.isprintable() else line.translate(table) for line in lines])
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _strip_table() -> dict[int, str | None]:
    """Return the table that removes invisible characters from any text."""
    if not _strip:
        _strip.update(_STRIP_ASCII)
        for characters in _INVISIBLE:
            _strip.update(dict.fromkeys(characters))
        _strip.update(_BLANKS)
    return _strip


def shown(text: str) -> str:
    """Return the text as it may be shown to a person or a model.

    Characters that hide or reorder text are removed first, because they could hide a secret or a tag.
    """
    from outlive.domain.text.redact import redact  # noqa: PLC0415 - a launch loads this module, but shows no text
    from outlive.domain.text.wrapper_tags import without_wrapper_tags  # noqa: PLC0415

    return without_wrapper_tags(redact(plain(text)))


def masked(text: str) -> str:
    """Return the text with its secrets masked and without other changes, for programs.

    If a secret contains color codes or invisible characters, all color codes and invisible characters are removed from
    the text.
    """
    from outlive.domain.text.redact import redact  # noqa: PLC0415 - a launch loads this module, but shows no text

    bare = plain(text)
    if bare == text:
        return redact(text)
    kept, safe = redact(text), redact(bare)
    return kept if plain(kept) == safe else safe


def visible(text: str) -> str:
    """Return the text with invisible characters escaped and tags made harmless.

    This function is for names and paths. `plain` would remove characters, so its result could be the name of another
    file.
    """
    from outlive.domain.text.wrapper_tags import without_wrapper_tags  # noqa: PLC0415 - a launch loads this module, but shows no text

    if not text.isascii() or not text.isprintable():
        table = _strip_table()
        text = "".join(_escaped(each) if ord(each) in table else each for each in text)
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return without_wrapper_tags(text)


def _escaped(character: str) -> str:
    """Return the character as an ASCII escape."""
    return character.encode("unicode_escape").decode("ascii")


def is_encodable(text: str) -> bool:
    """Return whether the text can be encoded as UTF-8.

    A lone surrogate can be encoded only if it stands for a byte that is not UTF-8.
    """
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


# The number of characters that are read in addition to four times the width of the line. Masking secrets and joining
# spaces make a text shorter. Without these characters, the line could become too short.
_BEYOND_WIDTH = 2000


def one_line(text: str, width: int) -> str:
    """Return the beginning of a text as one harmless line.

    The line has at most `width` characters.
    """
    most = 4 * max(width, 0) + _BEYOND_WIDTH
    flat = " ".join(shown(text[:most]).split())
    if len(text) > most:  # the cut may have removed the end of a secret from the last word
        flat = (flat.rpartition(" ")[0] or flat) + "…"
    return flat if len(flat) <= width else flat[: width - 1] + "…" if width > 0 else ""


def _without_escapes(text: str) -> Iterator[str]:
    """Yield the text between ECMA-48 escape sequences.

    A malformed sequence ends where it becomes malformed, because otherwise it could hide the text after it. The text is
    split only once, so that many sequences do not take long.
    """
    first, *rest = text.replace("\x9b", "\x1b[").split("\x1b")
    yield first
    is_in_string = False
    for piece in rest:
        kind = piece[:1]
        if is_in_string and kind == "\\":
            is_in_string = False
            yield piece[1:]
        elif is_in_string or (kind and kind in _STRINGS):
            ends = [at for end in "\x07\x9c\n" if (at := piece.find(end)) >= 0]
            is_in_string = not ends
            if ends:
                yield piece[min(ends) :]  # `plain` removes the terminator, except a newline
        elif kind == "[":
            yield _without_final(piece[1:].lstrip(_PARAMETERS), "@")
        elif kind and kind in _INTERMEDIATES:
            yield _without_final(piece.lstrip(_INTERMEDIATES), "0")
        else:
            yield _without_final(piece, "0")


def _without_final(text: str, lowest: str) -> str:
    """Return the text without its first character, if this ends an escape sequence."""
    return text[1:] if lowest <= text[:1] <= "~" else text


def to_json(value: object) -> str:
    """Return a value as JSON, without the `json` module.

    Importing `json` takes two thirds of the time of an interpreter start. Lone surrogates become ASCII escapes.
    """
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float) and value - value != 0:
        return "null"  # JSON has no value for infinity or NaN
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(str(k))}: {to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(to_json, value)) + "]"
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def from_json(text: str) -> object:
    """Return the value of a JSON text, parsed by the C part of the `json` module.

    The Python part of `json` is loaded only to report an error, because it imports `re`.
    """
    begin = len(text) - len(text.lstrip(" \t\n\r"))
    try:
        value, end = _scan(text, begin)
    except (StopIteration, SystemError):
        value, end = None, -1
    if end < 0 or text[end:].strip(" \t\n\r"):
        from json import loads  # noqa: PLC0415 - only the error for a damaged text needs this import

        parsed: object = loads(text)
        return parsed
    return value
