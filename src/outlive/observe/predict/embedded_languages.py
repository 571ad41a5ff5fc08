"""Conditions on text in another language: SQL, Redis, MongoDB, sed, awk, scripts.

Patterns are stored as text and compiled when they are first used, because a call needs only one or two of them.
"""

from __future__ import annotations

import re

from outlive.observe.predict.conditions import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.observe.shell.commands import Simple
    from outlive.observe.shell.split_options import Call


# The time of some patterns grows with the square of the text's length. A text above this length is not searched. Most
# checks then assume that the text changes data.
_LONGEST = 8 * 1024
_COMMENT = r"(?s)--[^\n]*|/\*.*?\*/"
_COMMENT_OR_STRING = r"(?s)--[^\n]*|/\*.*?\*/|'[^']*'"
_SQL_GIVEN = ("-c", "-e", "-q", "--command", "--execute", "--query", "-cmd")
_SQL_READS = words(
    "select show explain describe desc values with pragma begin start commit rollback set use end help table"
)
_SQL_CHANGES = (
    r"(?i)\b(insert|update|delete|merge|truncate|drop|alter|create|into|setval|nextval|dblink_exec"
    r"|pg_(terminate|cancel)_backend|lo_\w+)\b"
)
_META_CHANGES = r"(\\(i|ir|copy|o|w|!|gexec)|\.(import|read|restore|load|output|once|save|clone|system|shell|backup))\b"
# In some SQL, such as `copy t from 'x'`, a text in single quotes after `from` is the name of a file.
_SQL_TAKES = (
    r"""(?i)(?:^|[\n;])\s*(?:\\ir?|\\\.|\.read|\.import|\.restore|source)\s+(?:--?\w+\s+)*['"]?([^\s'";]+)"""
    r"""|\b(?:from|infile)\s+'([^']+)'"""
)
# Parts of a sed script in which a letter is not a command: the pattern and replacement of the command `s`, and the
# addresses of lines.
_SED_SAYS = r"(?s)(?<![a-zA-Z])[sy]([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1(?:\\.|(?!\1)[^\\])*\1|/(?:\\.|[^/\\\n])*/"
_SED_WRITES = r"(^|[;{}/\d$!\n])\s*[wW]\s*\S|~[gpiIemM\d]*w\s*\S"
_SED_RUNS = r"(^|[;{}/\d$!\n])\s*e(\s|$)|~[gpiImM\d]*e"
# A `>` in the arguments of `print` redirects the output to a file, unless the `>` is in quotes. A `>` in a later
# statement is a comparison.
_AWK_WRITES = r"""print(?:"(?:\\.|[^"\\])*"|[^|;}\n"])*>\s*(?!"/dev/std)["$\w(]"""
_AWK_RUNS = r"""(?<!\|)\|&?\s*"|\bsystem\s*\("""
_SCRIPT_ACTS = r"\b(open|system|unlink|exec|rename|mkdir|rmdir|eval|File|IO|Dir|FileUtils|qx|fork)\b|`|>\s*[\"']"
_SCRIPT_WRITES = (
    r"""\bopen\((?:[^()\n]|\([^()\n]*\))*,\s*(mode=)?['"][rbt]*[wax+][wabxt+]*['"]"""
    r"""|\.(write_(text|bytes)|unlink|touch|savefig|save_pretrained|to_(csv|parquet|excel|pickle))\("""
    r"""|\b(os\.(remove|rename|replace|makedirs|mkdir|rmdir|unlink|symlink|link|chmod|truncate)|(np|torch)\.savez?)\("""
    r"""|\bshutil\.(copy\w*|move|rmtree|make_archive|unpack_archive)\("""
    r"""|\bfsp?\.(promises\.)?((write|append|copy)File\w*|rm|unlink|rename|mkdir|createWriteStream)\("""
    r"""|\b(write|append|copy)FileSync\(|\b(rm|mkdir|unlink|rename)Sync\(|\b(Bun\.write|Deno\.(write|remove|mkdir)\w*)\("""
    r"""|\b((File|IO)\.(write|binwrite|delete|rename)|FileUtils\.\w+)\b|\bfile_put_contents\("""
)
_REDIS_READS = words(
    "ping get mget keys scan info dbsize exists ttl pttl type llen lrange lindex smembers scard sismember hget hgetall "
    "hkeys hvals hlen hmget zrange zrangebyscore zscore zcard zcount zrank strlen getrange monitor slowlog latency "
    "object memory time lastsave client-list echo role xlen xrange xinfo xpending sscan hscan zscan bitcount randomkey "
    "pfcount command"
)
_MONGO_CHANGES = (
    r"\.(insert|update|delete|remove|drop|replace|save|create|rename|bulkWrite|findOneAnd|findAndModify|aggregate"
    r"|add|grant|revoke|shutdown)\w*\s*\("
)


def changes_sql(call: Call, command: Simple) -> bool:
    """Return whether the SQL of a call changes data. Unknown SQL counts as changing."""
    given = call.values_of(_SQL_GIVEN)
    given += [word for word in call.operands if " " in word.text or word.text.startswith(("\\", "."))]
    texts = [word.text for word in given]
    if not texts:
        if command.stdin is None:
            return command.is_fed
        texts = [command.stdin]
    if any(len(text) > _LONGEST for text in texts):
        return True
    return any(_changes(statement) for text in texts for statement in _quiet(text).split(";"))


def files_in_sql(text: str) -> list[str]:
    r"""Return the files in SQL like `\i x`, `.import x t`, or `copy t from 'x'`."""
    return [found[1] or found[2] for found in re.finditer(_SQL_TAKES, text[:_LONGEST])]


def _quiet(sql: str) -> str:
    """Return SQL without its comments and strings.

    Strings are kept if the text has a backslash, because their ends are then unknown.
    """
    return re.sub(_COMMENT if "\\" in sql else _COMMENT_OR_STRING, " ", sql)


def has_sql(call: Call, command: Simple) -> bool:
    """Return whether the call or its input contains SQL."""
    return (
        bool(call.values_of(_SQL_GIVEN))
        or command.stdin is not None
        or any(" " in word.text or word.text.startswith(("\\", ".")) for word in call.operands)
    )


def _changes(statement: str) -> bool:
    words = statement.split()
    if not words:
        return False
    first = words[0].lower()
    if first.startswith(("\\", ".")):
        return re.match(_META_CHANGES, first) is not None
    if first == "pragma":
        return "=" in statement
    if first in {"set", "show"}:
        return False
    return first not in _SQL_READS or re.search(_SQL_CHANGES, statement) is not None


def changes_redis(call: Call, command: Simple) -> bool:
    """Return whether the command for Redis may change anything."""
    words = [word.text.lower() for word in call.operands]
    if call.names & {"--eval", "--pipe"}:
        return True
    if not words:
        return command.is_fed and not call.names & {"--scan", "--bigkeys", "--stat", "--latency"}
    if words[0] in {"config", "client", "acl", "cluster"}:
        return words[1:2] not in (["get"], ["list"], ["info"], ["nodes"], ["whoami"], ["slots"])
    return words[0] not in _REDIS_READS


def changes_mongo(call: Call, command: Simple) -> bool:
    """Return whether the script for MongoDB calls a method that writes."""
    scripts = [value for name, value in call.values if name == "--eval"]
    if not scripts:
        return command.is_fed
    return any(
        not word.literal or len(word.text) > _LONGEST or re.search(_MONGO_CHANGES, word.text) for word in scripts
    )


def sed_writes(call: Call, _: Simple) -> bool:
    """Return whether a sed script contains commands that write files."""
    return any(len(script) > _LONGEST or re.search(_SED_WRITES, script) for script in _sed_scripts(call))


def sed_runs(call: Call, _: Simple) -> bool:
    """Return whether a sed script runs commands."""
    return any(len(script) <= _LONGEST and re.search(_SED_RUNS, script) for script in _sed_scripts(call))


def _sed_scripts(call: Call) -> list[str]:
    """Return a call's sed scripts with placeholders for patterns and addresses.

    `~` stands for the pattern and replacement of `s` or `y`, and `/` for an address.
    """
    scripts = call.values_of(("-e", "--expression")) or call.operands[:1]
    return [
        word.text
        if len(word.text) > _LONGEST
        else re.sub(_SED_SAYS, lambda found: "/" if found[1] is None else "~", word.text)
        for word in scripts
    ]


def script_only_prints(call: Call, _: Simple) -> bool:
    """Return whether a one-line script of perl or ruby only prints."""
    if call.names & {"-v", "-c"} and not call.values:
        return True
    scripts = call.values_of(("-e", "-E"))
    is_filter = bool(scripts) and bool(call.names & {"-n", "-p"})
    return is_filter and not any(
        not word.literal or len(word.text) > _LONGEST or re.search(_SCRIPT_ACTS, word.text) for word in scripts
    )


def script_writes(call: Call, command: Simple) -> bool:
    """Return whether a script writes or removes files, and does not name `/tmp`."""
    texts = [word.text for word in call.values_of(("-c", "-e", "-E", "-r", "--eval"))] or [command.stdin or ""]
    return any(
        len(text) <= _LONGEST and "/tmp" not in text and re.search(_SCRIPT_WRITES, text)  # noqa: S108 - the text is searched for this path, and no file is created
        for text in texts
    )


def awk_writes(call: Call, _: Simple) -> bool:
    """Return whether an awk script contains statements that write files."""
    return any(len(word.text) > _LONGEST or re.search(_AWK_WRITES, word.text) for word in call.operands[:1])


def awk_runs(call: Call, _: Simple) -> bool:
    """Return whether an awk script runs commands."""
    return any(len(word.text) <= _LONGEST and re.search(_AWK_RUNS, word.text) for word in call.operands[:1])
