"""The tags that agent clients put around their own messages to a model.

Other text that Outlive shows must not contain these tags. If an output contained `</system-reminder>`, the client's
message would end there, and the model would take the rest of the output for text of the user. So this tag becomes
`[/system-reminder]`. Other markup is kept, because people search outputs for markup.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Characters that look like angle brackets: full-width and small forms, quotation marks and mathematical brackets.
_OPENING = "<\uff1c\ufe64\u2039\u3008\u27e8\u2329\u276e\u2770\u276c\u29fc\u1438\u02c2"
_CLOSING = ">\uff1e\ufe65\u203a\u3009\u27e9\u232a\u276f\u2771\u276d\u29fd\u1433\u02c3"
# Letters of other scripts that look like Latin letters. Unicode has no decomposition for them.
_CONFUSABLE = str.maketrans(
    "\u0430\u0435\u0456\u043e\u0440\u0441\u0443\u0445\u0455\u0458\u0501\u051b\u04bb\u03b1\u03b9\u03bd\u03bf\u03c1"
    "\u03c5\u0442\u043c\u043a\u043d\u0432\u0131\u0261\u2044\u2215\u29f8",
    "aeiopcyxsjdlhaivopytmkhbig///",
)
# In a text that is prepared for the search, this character replaces an accent or a stroke. No text that is shown
# contains it.
_MARK = "\0"
_DASHES = dict.fromkeys((*range(0x2010, 0x2016), 0x2212, 0x2043, 0xFE58, 0xFE63, 0xFF0D), "-")
_LOWER = {code: chr(code + 32) for code in range(ord("A"), ord("Z") + 1)}
_BRACKETS = {**dict.fromkeys(map(ord, _OPENING), "<"), **dict.fromkeys(map(ord, _CLOSING), ">")}

# The tags of Claude Code, Codex, Gemini CLI, OpenCode and OpenClaw. The words of a tag may be separated by
# spaces, dashes or underscores, or by nothing.
_NAMES = (
    "system(?=\\s{0,20}>)",
    "system (?:reminder|notification|note|message|prompt|update|instructions?|event|warning|info)",
    "task (?:notification|state|result|reminder)",
    "(?:local )?command (?:name|message|args|contents|stdout|stderr|caveat)",
    "bash (?:input|stdout|stderr)",
    "user (?:prompt submit hook|memory input|instructions?|query|action|message|input|shell command|claude md)",
    "user verification notice",
    "(?:tool|function) (?:use|call|result|output|response)s?(?: (?:error|id|masked))?",
    "antml:[a-z_]+",
    "(?:hook|session|environment|global|extension|project|loaded|startup|untrusted|developer) context",
    "context window(?: (?:reminder|guidance))?",
    "(?:state|memory) (?:snapshot|updates|listing)",
    "turn aborted",
    "(?:persisted|truncated|interrupted|background) output",
    "(?:pasted|channel) content",
    "new diagnostics",
    "(?:sub ?agent|agent message board) notification",
    "conversation (?:history|checkpoint)",
    "(?:previous|shared) conversation",
    "(?:invoke|parameter)(?=\\s+name)",
    "(?:(?<=/)|(?<=/\\s))(?:invoke|parameter|output)(?=\\s{0,20}>)",
    "(?:start|end) of turn",
    "proposed plan",
    "(?:collaboration|persistent) mode",
    "(?:permissions|skills|plugins|apps|mcp|model|managed developer|environments|custom) instructions",
    "(?:begin|end) (?:openclaw internal context|untrusted child result)",
    "(?:end )?external untrusted content",
    "[|](?:im start|im end|im sep|endoftext|eot id|(?:start|end) header id|system|user|assistant)[|]",
    "[|](?:start|end|message|channel|constrain|call|return)[|]",
)
_NAME = "|".join(_NAMES).replace(" ?", "[-_\\s]{0,4}").replace(" ", "[-_\\s]{0,4}")
# In JSON, a newline may be written as `\n` and a slash as `\/`.
_BLANK = r"(?:\s|\\[nrt/])"
_GAP = rf"{_BLANK}{{0,20}}"
# In `List<UserMessage>`, the text in brackets is a type and not a tag. So directly after a word, a tag must have a
# slash or several words.
_START = rf"(?:(?<!\w<)|(?={_GAP}/|[a-z]+[-_:\s]|[|]))"
# The pattern is for text in lower case. It begins with a fixed character, and tests the next character before the
# names of the tags. So a search passes over ordinary text very fast.
_REST = rf"{_BLANK}{{0,40}}(?:/{_GAP})?(?=[a-z|])(?:{_NAME})(?![\w.:-])[^<>]{{0,200}}(?P<end>>)?"
TAG = rf"<(?=[\s\\/a-z|]){_START}(?={_REST})"


def without_wrapper_tags(text: str) -> str:
    """Return the text with square brackets instead of angle brackets around all tags."""
    if text.isascii():
        return _replaced(text, text.lower()) if "<" in text else text
    if not any(bracket in text for bracket in _OPENING):
        return text
    folded = _folded(text)
    if _MARK not in folded:
        return _replaced(text, folded)
    places = [at for at, character in enumerate(folded) if character != _MARK]
    return _replaced(text, folded.replace(_MARK, ""), places=places)


def json_without_wrapper_tags(document: str) -> str:
    """Return an ASCII JSON document with the same values, but with tags escaped.

    The tags are those that clients put around their own messages.
    """
    if "<" not in document:
        return document
    return _replaced(document, document.lower(), opening="\\u003c", closing=">")


def _replaced(
    text: str, folded: str, *, places: Sequence[int] | None = None, opening: str = "[", closing: str = "]"
) -> str:
    """Return the text with square brackets at the places where `folded` has a tag.

    `folded` is the text in lower case, with look-alikes of ASCII characters as ASCII. `places` has the place in `text`
    of each character of `folded`. None means that each character has the same place in both texts.
    """
    from re import finditer  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    kept: list[str] = []
    at = 0
    for match in finditer(TAG, folded):
        for group, bracket in ((0, opening), ("end", closing)):
            if match[group] is not None:
                start = match.start(group)
                start = start if places is None else places[start]
                kept += (text[at:start], bracket)
                at = start + 1
    return "".join((*kept, text[at:])) if kept else text


def _folded(text: str) -> str:
    """Return the text in lower case, with look-alikes of ASCII characters as ASCII."""
    from unicodedata import category, combining, normalize  # noqa: PLC0415 - only text that is not ASCII needs this import

    table: dict[int, str] = {**_DASHES, **_BRACKETS, **_LOWER}
    for character in set(text):
        if category(character) in {"Mn", "Me"}:
            table[ord(character)] = _MARK
        elif not character.isascii() and ord(character) not in table:
            parts = normalize("NFKD", character.lower()) or character
            if all(map(combining, parts[1:])):
                table[ord(character)] = parts[0].translate(_CONFUSABLE)
    # Most lines are ASCII. For these lines, `lower` is much faster than the table and gives the same result.
    return "\n".join([line.lower() if line.isascii() else line.translate(table) for line in text.split("\n")])
