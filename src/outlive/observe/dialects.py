"""Questions that options alone do not answer: what the words themselves say, in the program's own language."""

from __future__ import annotations

import re

from outlive.observe.shell import PROGRAMS_OF_GIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.observe.options import Call
    from outlive.observe.shell import Simple


def words(text: str) -> frozenset[str]:
    """A set of words, as a table writes them."""
    return frozenset(text.split())


# Some patterns take time that grows with the square of the text. One that is longer is taken to write.
_LONGEST = 8 * 1024
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMENT_OR_STRING = re.compile(r"--[^\n]*|/\*.*?\*/|'[^']*'", re.DOTALL)
_SQL_GIVEN = ("-c", "-e", "-q", "--command", "--execute", "--query", "-cmd")
_SQL_READS = words(
    "select show explain describe desc values with pragma begin start commit rollback set use end help table"
)
_SQL_CHANGES = re.compile(
    r"\b(insert|update|delete|merge|truncate|drop|alter|create|into|setval|nextval|dblink_exec"
    r"|pg_(terminate|cancel)_backend|lo_\w+)\b",
    re.IGNORECASE,
)
_META_CHANGES = re.compile(
    r"(\\(i|ir|copy|o|w|!|gexec)|\.(import|read|restore|load|output|once|save|clone|system|shell|backup))\b"
)
# Behind `from` only a file stands in single quotes.
_SQL_TAKES = re.compile(
    r"""(?:^|[\n;])\s*(?:\\ir?|\\\.|\.read|\.import|\.restore|source)\s+(?:--?\w+\s+)*['"]?([^\s'";]+)"""
    r"""|\b(?:from|infile)\s+'([^']+)'""",
    re.IGNORECASE,
)
# What `s` looks for and puts there, and the addresses of lines: of neither, a letter is a command.
_SED_SAYS = re.compile(
    r"(?<![a-zA-Z])[sy]([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1(?:\\.|(?!\1)[^\\])*\1|/(?:\\.|[^/\\\n])*/", re.DOTALL
)
_SED_WRITES = re.compile(r"(^|[;{}/\d$!\n])\s*[wW]\s*\S|~[gpiIemM\d]*w\s*\S")
_SED_RUNS = re.compile(r"(^|[;{}/\d$!\n])\s*e(\s|$)|~[gpiImM\d]*e")
# What stands in quotes may hold any sign; a comparison in a later statement writes nothing.
_AWK_WRITES = re.compile(r"""print(?:"(?:\\.|[^"\\])*"|[^|;}\n"])*>\s*(?!"/dev/std)["$\w(]""")
_AWK_RUNS = re.compile(r"""(?<!\|)\|&?\s*"|\bsystem\s*\(""")
_SCRIPT_ACTS = re.compile(
    r"\b(open|system|unlink|exec|rename|mkdir|rmdir|eval|File|IO|Dir|FileUtils|qx|fork)\b|`|>\s*[\"']"
)
_SCRIPT_WRITES = re.compile(
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
_MONGO_CHANGES = re.compile(
    r"\.(insert|update|delete|remove|drop|replace|save|create|rename|bulkWrite|findOneAnd|findAndModify|aggregate"
    r"|add|grant|revoke|shutdown)\w*\s*\("
)
_CLOUD_READS = words(
    "describe list get show head lookup search filter tail ls wait print read scan query presign validate"
)
_CLOUD_CHANGES = words(
    "create delete update set unset add remove put start stop restart reboot terminate run deploy undeploy patch "
    "import export move attach detach enable disable reset resize submit apply cancel upload copy restore promote "
    "invoke publish send purge register deregister grant revoke rotate modify tag untag"
)
# Of git's settings, those that name a program; and programs that only show something, or connect.
_RUN_BY_GIT = words(
    "pager editor external command textconv fsmonitor sshcommand hookspath helper program clean smudge process cmd "
    "driver gitproxy askpass uploadpack receivepack"
)
_RUNNING_OPTIONS = words("--upload-pack --receive-pack --open-files-in-pager --exec-path")
_SHOWS = re.compile(
    r"(:|true|false|/dev/null|(cat|less|more|head|bat|delta|ssh|vim?|nvim|nano)( (?!.*ProxyCommand)[\w ./=:-]*)?)?"
)
_METHODS = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_ASKING = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH"))
_ACTIVATES = ("/activate", "/.cargo/env", "/.bashrc", "/.profile", "/.bash_profile", "/.zshrc", "/nvm.sh")


def changes_sql(call: Call, command: Simple) -> bool:
    """Whether the SQL that is given changes anything; what is fed unseen may."""
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
    r"""What a text for a database may name as a file to take in: `\i x`, `.import x t`, `copy t from 'x'`."""
    return [found[1] or found[2] for found in _SQL_TAKES.finditer(text[:_LONGEST])]


def _quiet(sql: str) -> str:
    """SQL without what only says something; where a quote may be escaped, nobody knows where a string ends."""
    return (_COMMENT if "\\" in sql else _COMMENT_OR_STRING).sub(" ", sql)


def has_sql(call: Call, command: Simple) -> bool:
    """Whether any SQL is given at all."""
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
        return _META_CHANGES.match(first) is not None
    if first == "pragma":
        return "=" in statement
    if first in {"set", "show"}:
        return False
    return first not in _SQL_READS or _SQL_CHANGES.search(statement) is not None


def changes_redis(call: Call, command: Simple) -> bool:
    """Whether the command for Redis is none that reads."""
    words = [word.text.lower() for word in call.operands]
    if call.names & {"--eval", "--pipe"}:
        return True
    if not words:
        return command.is_fed and not call.names & {"--scan", "--bigkeys", "--stat", "--latency"}
    if words[0] in {"config", "client", "acl", "cluster"}:
        return words[1:2] not in (["get"], ["list"], ["info"], ["nodes"], ["whoami"], ["slots"])
    return words[0] not in _REDIS_READS


def changes_mongo(call: Call, command: Simple) -> bool:
    """Whether the script for MongoDB calls anything that writes."""
    scripts = [value for name, value in call.values if name == "--eval"]
    if not scripts:
        return command.is_fed
    return any(not word.literal or len(word.text) > _LONGEST or _MONGO_CHANGES.search(word.text) for word in scripts)


def sed_writes(call: Call, _: Simple) -> bool:
    """Whether a sed script writes files by itself."""
    return any(len(script) > _LONGEST or _SED_WRITES.search(script) for script in _sed_scripts(call))


def sed_runs(call: Call, _: Simple) -> bool:
    """Whether a sed script runs commands."""
    return any(len(script) <= _LONGEST and _SED_RUNS.search(script) for script in _sed_scripts(call))


def _sed_scripts(call: Call) -> list[str]:
    """The scripts without what they look for: `~` where that was to be replaced, `/` where it is an address."""
    scripts = call.values_of(("-e", "--expression")) or call.operands[:1]
    return [
        word.text
        if len(word.text) > _LONGEST
        else _SED_SAYS.sub(lambda found: "/" if found[1] is None else "~", word.text)
        for word in scripts
    ]


def edits_in_place(call: Call, _: Simple) -> bool:
    """Whether the files themselves are edited, not what is printed of them."""
    return bool(call.names & {"-i", "--in-place"})


def sed_keeps_no_copy(call: Call, _: Simple) -> bool:
    """Whether an empty word says so behind `-i`, as sed on a Mac is told it."""
    return "-i" in call.names and [word.text for word in call.operands[:1]] == [""]


def git_runs(call: Call, command: Simple) -> bool:
    """Whether git is told a program to run that may do more than to show something."""
    told = [value.text for name, value in command.sets if name in PROGRAMS_OF_GIT]
    for setting in call.values_of(("-c",)):
        name, _, value = setting.text.partition("=")
        if name.startswith("pager.") or name.lower().rpartition(".")[2] in _RUN_BY_GIT:
            told.append(value)
    told += [word.text for word in call.operands if word.text.startswith("ext::")]
    return not all(map(_SHOWS.fullmatch, told)) or bool(call.names & _RUNNING_OPTIONS)


def awk_edits_in_place(call: Call, _: Simple) -> bool:
    """Whether awk is told to write back."""
    return any(word.text == "inplace" for word in call.values_of(("-i", "--include")))


def script_only_prints(call: Call, _: Simple) -> bool:
    """Whether a one-line script of perl or ruby has no call in it that could do more than print."""
    if call.names & {"-v", "-c"} and not call.values:
        return True
    scripts = call.values_of(("-e", "-E"))
    is_filter = bool(scripts) and bool(call.names & {"-n", "-p"})
    return is_filter and not any(
        not word.literal or len(word.text) > _LONGEST or _SCRIPT_ACTS.search(word.text) for word in scripts
    )


def script_writes(call: Call, command: Simple) -> bool:
    """Whether a script that is written out opens files for writing, or removes some.

    If it names a temporary one, it may mean only that.
    """
    texts = [word.text for word in call.values_of(("-c", "-e", "-E", "-r", "--eval"))] or [command.stdin or ""]
    return any(
        len(text) <= _LONGEST and "/tmp" not in text and _SCRIPT_WRITES.search(text)  # noqa: S108 - looked for, not used
        for text in texts
    )


def ends_own_children(call: Call, _: Simple) -> bool:
    """Whether only jobs are ended that the same shell has started."""
    return bool(call.operands) and all(word.text == "$!" or word.text.startswith("%") for word in call.operands)


def awk_writes(call: Call, _: Simple) -> bool:
    """Whether an awk script writes files by itself."""
    return any(len(word.text) > _LONGEST or _AWK_WRITES.search(word.text) for word in call.operands[:1])


def awk_runs(call: Call, _: Simple) -> bool:
    """Whether an awk script runs commands."""
    return any(len(word.text) <= _LONGEST and _AWK_RUNS.search(word.text) for word in call.operands[:1])


def sends(call: Call, _: Simple) -> bool:
    """Whether a request is of a kind that changes something."""
    method = call.value_of(("-X", "--request", "--method"))
    if method is not None:
        return not method.literal or method.text.upper() not in _ASKING
    return bool(
        call.names
        & {
            *("-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--json", "-F", "--form", "-T"),
            *("--data-ascii", "--form-string", "--upload-file", "--post-data", "--post-file", "--body-data"),
        }
    )


def sends_fields(call: Call, command: Simple) -> bool:
    """Whether a call of a hosting service's interface changes something: fields make it a POST."""
    is_reading = call.value_of(("-X", "--method")) is not None and not sends(call, command)
    return sends(call, command) or (
        not is_reading and bool(call.names & {"-f", "-F", "--field", "--raw-field", "--input"})
    )


def method_is_given(call: Call, _: Simple) -> bool:
    """Whether the first operand is the name of a method that changes something (httpie)."""
    fields = [word.text for word in call.operands[1:] if re.match(r"[\w-]+(:=|=(?!=)|@)", word.text)]
    methods = _METHODS | {"GET", "HEAD", "OPTIONS"}
    first = call.operands[0].text.upper() if call.operands else ""
    return first in _METHODS or (first not in methods and bool(fields))


def archive_is_read(call: Call, _: Simple) -> bool:
    """Whether `tar` only lists, or compares: also in the old style, without a dash."""
    return _archive_mode(call) in {"t", "d"}


def archive_is_made(call: Call, _: Simple) -> bool:
    """Whether `tar` writes an archive."""
    return _archive_mode(call) in {"c", "r", "u", "A"}


def _archive_mode(call: Call) -> str:
    modes = {"list": "t", "compare": "d", "diff": "d", "create": "c", "append": "r", "update": "u", "extract": "x"}
    long = next((letter for name, letter in modes.items() if "--" + name in call.names), "")
    return long or next((letter for letter in "tdcruAx" if "-" + letter in call.names), "")


def mode_is_an_option(call: Call, _: Simple) -> bool:
    """Whether `chmod` takes rights away by what looks like an option, or takes the mode from a file."""
    return "--reference" in call.names or any(re.fullmatch(r"-[rwxXstugoa,=+-]+", name) for name in call.names)


def assigns(call: Call, _: Simple) -> bool:
    """Whether an operand sets something to a value."""
    return any("=" in word.text or not word.literal for word in call.operands)


def sets_the_clock(call: Call, _: Simple) -> bool:
    """Whether `date` is given a time, and not the form of its answer."""
    return any(not word.text.startswith("+") for word in call.operands)


def dd_writes(call: Call, _: Simple) -> bool:
    """Whether `dd` is told to write somewhere."""
    return any(word.text.startswith("of=") for word in call.operands)


def is_remote(call: Call, _: Simple) -> bool:
    """Whether the destination is on another machine."""
    last = call.operands[-1].text if call.operands else ""
    return ":" in last.partition("/")[0] or last.startswith("rsync://")


def changes_only_this_shell(call: Call, _: Simple) -> bool:
    """Whether a sourced file is one of those that only set up a shell."""
    return bool(call.operands) and call.operands[0].text.endswith(_ACTIVATES)


def asks_a_cloud(call: Call, _: Simple) -> bool:
    """Whether the verb of a cloud's command line is one that reads.

    The nouns before it differ in number, and what follows it may be called as it likes: the first verb counts.
    """
    first_words = (word.text.removeprefix("batch-").partition("-")[0] for word in call.operands[1:4])
    return next((word for word in first_words if word in _CLOUD_READS | _CLOUD_CHANGES), "") in _CLOUD_READS


def is_a_query(call: Call, _: Simple) -> bool:
    """Whether GraphQL that is written out asks and changes nothing."""
    fields = call.values_of(("-f", "-F", "--field", "--raw-field"))
    texts = [word.text.removeprefix("query=").lstrip() for word in fields if word.text.startswith("query=")]
    is_read = bool(texts) and all(word.literal for word in fields)
    return is_read and all(text.startswith(("query", "{")) and "mutation" not in text for text in texts)


def fetches_nothing(call: Call, _: Simple) -> bool:
    """Whether `wget` keeps nothing of what it fetches."""
    target = call.value_of(("-O", "--output-document"))
    return "--spider" in call.names or (target is not None and target.text == "-")
