"""A reader of shell texts that uses a full grammar, tree-sitter-bash.

Importing this module fails if the grammar's packages cannot be loaded. If a text is not valid bash, its syntax tree has
errors. This tree is read, but the text counts as only partly read.
"""

from __future__ import annotations

from importlib import import_module
from itertools import zip_longest

from outlive.domain.text.sanitize import is_encodable
from outlive.domain.value import Value
from outlive.observe.compiled_part import load_compiled
from outlive.observe.shell.commands import ANY_WORD, VARIABLES_OF_GIT, Simple, Word, one_line
from outlive.observe.shell.expansion import WordReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tree_sitter import Node

    from outlive.observe.shell.commands import Reader, Scope

    Link = tuple[Node, list[Node], bool]

_WRITING = frozenset((">", ">>", "&>", "&>>", ">|", ">&", "<>"))
_ABOUT_FILES = frozenset(f"-{letter}" for letter in "bcdefghkprsuwxGLNOS")
_ABOUT_TWO_FILES = frozenset(("-nt", "-ot", "-ef"))
_TERMS = frozenset(("unary_expression", "binary_expression", "parenthesized_expression"))
# A loop over more words than this is read only once, and the value of the loop's variable is then unknown.
_MOST_ROUNDS = 16


def _binding(package: str) -> Any:
    """Return a package's compiled binding without importing the package."""
    try:
        return load_compiled(package, "_binding")
    except ImportError:
        return import_module(package)


_TREE_SITTER = _binding("tree_sitter")
_BASH = _TREE_SITTER.Language(_binding("tree_sitter_bash").language())


class Feed(Value):
    """The input, redirected files and variables that a command gets from around it."""

    writes: tuple[Word, ...] = ()
    reads: tuple[Word, ...] = ()
    words: tuple[Word, ...] = ()
    stdin: str | None = None
    is_fed: bool = False
    sets: tuple[tuple[str, Word], ...] = ()


def parse(reader: Reader, text: str, scope: Scope, depth: int, given: Simple) -> bool:
    """Read the commands of a shell text, and pass each one to `reader`.

    `given` is the command that runs the text. Returns False if errors in the syntax tree of the text may hide commands.
    """
    source = text.encode("utf-8", "surrogateescape" if is_encodable(text) else "replace")
    root = _TREE_SITTER.Parser(_BASH).parse(source).root_node
    # If the text has several commands, it is unknown which command reads the input. So only a single command gets the
    # input.
    whole = root.named_children[0] if root.named_child_count == 1 else root
    _Walk(reader, source).visit(whole, scope, depth, Feed(stdin=given.stdin, is_fed=given.is_fed))
    return not root.has_error


class _Walk:
    """A walk over the syntax tree of one shell text."""

    def __init__(self, reader: Reader, source: bytes) -> None:
        self.reader = reader
        self.source = source
        self.read_word = WordReader(source, self.visit_apart)

    def visit(self, node: Node, scope: Scope, depth: int, feed: Feed | None = None) -> None:
        """Read a node of the syntax tree.

        If no method exists for the type of the node, its parts are read. `feed` has the input, the redirected files and
        the variables of the node.
        """
        if not self.reader.may_go_on(depth):
            return
        visit = getattr(self, f"visit_{node.type}", None)
        if visit is not None:
            visit(node, scope, depth + 1, feed or Feed())
            return
        self._visit_parts(node, scope, depth)

    def _visit_parts(self, node: Node, scope: Scope, depth: int) -> None:
        """Read the parts of a syntax-tree node. A part with `&` after it gets a subshell."""
        parts = node.children
        for part, sign in zip_longest(parts, parts[1:]):
            if part.is_named:
                self.visit(part, scope.copy() if sign is not None and sign.type == "&" else scope, depth + 1)

    def visit_apart(self, node: Node, scope: Scope, depth: int) -> None:
        """Read the parts of a syntax-tree node as in a subshell.

        `scope`, which has the known directory, variables and functions, does not change.
        """
        self._visit_parts(node, scope.copy(), depth)

    def visit_subshell(self, node: Node, scope: Scope, depth: int, _: Feed) -> None:
        self.visit_apart(node, scope, depth)

    visit_command_substitution = visit_subshell
    visit_process_substitution = visit_subshell

    def visit_list(self, node: Node, scope: Scope, depth: int, _: Feed) -> None:
        """Read `a && b || c`, one part after the other."""
        self._visit_chain(_chained(node), scope, depth)

    def _visit_chain(self, chain: list[Link], scope: Scope, depth: int) -> None:
        """Read each part of a chain such as `a && b || c`.

        A part after `||` begins in the directory in which the part before it began. If the two parts end in different
        directories, the directory after the chain is unknown.
        """
        before = scope.directory
        for part, redirects, is_else in chain:
            here = scope.directory
            before = scope.directory = before if is_else else here
            self._redirect(part, redirects, scope, depth, Feed())
            if is_else and scope.directory == before:
                scope.directory = here
            elif is_else and scope.directory != here:
                scope.directory = ANY_WORD.text

    def visit_pipeline(self, node: Node, scope: Scope, depth: int, feed: Feed) -> None:
        """Read each part of a pipe in a subshell.

        If a part is an `echo`, its text is the input of the next part.
        """
        self._pipe(node, [], scope, depth, feed)

    def _pipe(self, node: Node, redirects: list[Node], scope: Scope, depth: int, feed: Feed) -> None:
        if not node.named_children:
            return
        first, *rest = node.named_children
        # The grammar reads `a && b | c` as a pipe from both commands, but only `b` writes into the pipe.
        *before, begin = _chained(first)
        self._visit_chain(before, scope, depth)
        parts: list[tuple[Node, list[Node]]] = [begin[:2], *((each, []) for each in rest)]
        parts[-1][1].extend(redirects)
        for part, its_redirects in parts:
            self._redirect(part, its_redirects, scope.copy(), depth, feed)
            feed = Feed(stdin=self._written_by(part, scope, depth), is_fed=True)

    def visit_redirected_statement(self, node: Node, scope: Scope, depth: int, feed: Feed) -> None:
        """Read a simple or compound command that has redirections."""
        body, redirects = node.child_by_field_name("body"), node.children_by_field_name("redirect")
        if body is not None and body.type == "list":
            self.visit_list(node, scope, depth, feed)
        else:
            self._redirect(body, redirects, scope, depth, feed)

    def _redirect(self, body: Node | None, redirects: list[Node], scope: Scope, depth: int, feed: Feed) -> None:
        """Read a node of the syntax tree with its redirections, if any."""
        if body is not None and body.type == "pipeline":
            self._pipe(body, redirects, scope, depth, feed)
            return
        later: list[tuple[Node, Feed]] = []
        for redirect in redirects:
            feed = self._redirected(redirect, scope, depth, feed, later)
        if body is not None and (body.type == "command" or not redirects):
            self.visit(body, scope, depth, feed)
        else:
            if feed.writes or feed.reads:
                line = one_line(self.read_word.source_of(redirects[0].parent or redirects[0]))
                self._add((), line, scope, depth, Feed(writes=feed.writes, reads=feed.reads))
            if body is not None:
                self.visit(body, scope, depth, feed.but(writes=(), reads=(), words=()))
        for following, its_feed in later:
            self.visit(following, scope, depth, its_feed)

    def visit_command(self, node: Node, scope: Scope, depth: int, feed: Feed) -> None:
        """Read a simple command. Assignments before it apply only to this command."""
        words: list[Word] = []
        own = scope.copy()
        for child in node.named_children:
            if child.type == "variable_assignment":
                self.visit_variable_assignment(child, own, depth, feed)
            elif child.type.endswith("_redirect"):
                feed = self._redirected(child, scope, depth, feed, [])
            elif self.read_word.source_of(child).startswith("\n"):
                self.reader.is_whole = False  # the grammar misreads a here-document that begins with a backslash
                break
            else:
                words += self.read_word.words(child, scope, depth)
        words += feed.words
        function = scope.functions.get(words[0].text) if words else None
        if isinstance(function, tuple):
            walk, body = function
            scope.functions.pop(words[0].text)  # a function that calls itself is read only once
            walk.visit(body, scope, depth)
            scope.functions[words[0].text] = function
            words = []
        feed = feed.but(sets=tuple((name, own.variables[name]) for name in VARIABLES_OF_GIT if name in own.variables))
        if words or feed.writes or feed.reads:
            self._add(tuple(words), one_line(self.read_word.source_of(node)), scope, depth, feed)

    def visit_declaration_command(self, node: Node, scope: Scope, depth: int, feed: Feed) -> None:
        """Read `export A=b` and similar declarations."""
        for child in node.named_children:
            self.visit(child, scope, depth, feed)

    def visit_variable_assignment(self, node: Node, scope: Scope, depth: int, _: Feed) -> None:
        """Remember the value of a variable for the words that use the variable."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        word = self.read_word(value, scope, depth) if value is not None else Word(text="")
        if name is not None:
            scope.variables[self.read_word.source_of(name)] = word

    def visit_function_definition(self, node: Node, scope: Scope, depth: int, _: Feed) -> None:
        """Remember the body of a function, which is read when the function is called."""
        del depth
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            scope.functions[self.read_word.source_of(name)] = (self, body)

    def visit_for_statement(self, node: Node, scope: Scope, depth: int, _: Feed) -> None:
        """Read a loop's body for each literal word, or once if a word is unknown."""
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        words = [
            word for each in node.children_by_field_name("value") for word in self.read_word.words(each, scope, depth)
        ]
        if name is None or body is None:
            return
        variable = self.read_word.source_of(name)
        if not words or len(words) > _MOST_ROUNDS or not all(word.literal for word in words):
            words = [Word(text="$" + variable, literal=False)]
        for word in words:
            scope.variables[variable] = word
            self.visit(body, scope, depth)

    def visit_file_redirect(self, node: Node, scope: Scope, depth: int, feed: Feed) -> None:
        """Read a redirection without a command, such as `$(<file)`."""
        given = self._redirected(node, scope, depth, feed, [])
        self._add((), one_line(self.read_word.source_of(node)), scope, depth, given)

    def visit_test_command(self, node: Node, scope: Scope, depth: int, _: Feed) -> None:
        """Read the names of files in tests such as `[ -f a ]` and `[[ a -nt b ]]`."""
        terms, waiting = [], list(reversed(node.named_children))
        while waiting:
            term = waiting.pop()
            if term.type in _TERMS:
                waiting += reversed(term.named_children)
            else:
                terms.append((term, self.read_word(term, scope, depth)))
        signs = ["", *(word.text if term.type == "test_operator" else "" for term, word in terms), ""]
        reads = tuple(
            word
            for at, (_, word) in enumerate(terms)
            if not signs[at + 1] and (signs[at] in _ABOUT_FILES or {signs[at], signs[at + 2]} & _ABOUT_TWO_FILES)
        )
        if reads:
            self._add((), one_line(self.read_word.source_of(node)), scope, depth, Feed(reads=reads))

    def visit_heredoc_body(self, node: Node, scope: Scope, depth: int, _: Feed) -> None:
        self.visit_apart(node, scope, depth)

    def _redirected(self, node: Node, scope: Scope, depth: int, feed: Feed, later: list[tuple[Node, Feed]]) -> Feed:
        """Return the input and the files of a command, with one redirection added.

        `feed` has the input and the files without the redirection. Commands that follow a here-document on the same
        line are added to `later`.
        """
        if node.type == "herestring_redirect":
            word = self.read_word(node.named_children[-1], scope, depth)
            return feed.but(stdin=word.text if word.literal else None, is_fed=True)
        if node.type == "heredoc_redirect":
            return self._heredoc(node, scope, depth, feed, later)
        # The grammar reads the words after a redirection as further targets, but they are arguments.
        targets = node.children_by_field_name("destination")
        words = feed.words + tuple(word for each in targets[1:] for word in self.read_word.words(each, scope, depth))
        if not targets:
            return feed
        operators = {child.type for child in node.children if not child.is_named}
        target = self.read_word(targets[0], scope, depth)
        if not operators & _WRITING:
            return feed.but(words=words, reads=(*feed.reads, target), stdin=None, is_fed=True)
        if ">&" in operators and (target.text.isdigit() or target.text == "-"):
            return feed.but(words=words)
        return feed.but(words=words, writes=(*feed.writes, target))

    def _heredoc(self, node: Node, scope: Scope, depth: int, feed: Feed, later: list[tuple[Node, Feed]]) -> Feed:
        begin = None
        for child in node.named_children:
            if child.type == "heredoc_body":
                self.visit(child, scope, depth)
                is_plain = all(part.type == "heredoc_content" for part in child.named_children)
                text = self.read_word.source_of(child, begin).lstrip("\n")
                feed = feed.but(stdin=text if is_plain else None, is_fed=True)
                later[:] = [(each, its.but(stdin=feed.stdin) if its.is_fed else its) for each, its in later]
            elif child.type.endswith("_redirect"):
                feed = self._redirected(child, scope, depth, feed, later)
            elif child.type == "pipeline":
                later.append((child, Feed(is_fed=True)))
            elif child in node.children_by_field_name("argument"):
                # If a here-document begins with a backslash, the grammar reads its lines as arguments, too.
                if child.end_point.row == node.start_point.row:
                    feed = feed.but(words=(*feed.words, *self.read_word.words(child, scope, depth)))
                else:
                    begin = begin or child
            elif child.type not in {"heredoc_start", "heredoc_end"}:
                later.append((child, Feed()))
        return feed

    def _written_by(self, node: Node, scope: Scope, depth: int) -> str | None:
        """Return the text that an `echo` or `printf` writes.

        Returns None for other commands, and if a word is not literal.
        """
        if node.type != "command" or not self.read_word.source_of(node).startswith(("echo ", "printf ")):
            return None
        words = [word for child in node.named_children for word in self.read_word.words(child, scope, depth)]
        if all(word.literal for word in words):
            return " ".join(word.text for word in words[1:] if not word.text.startswith("-"))
        return None

    def _add(self, words: tuple[Word, ...], line: str, scope: Scope, depth: int, feed: Feed) -> None:
        command = Simple(
            words=words,
            directory=scope.directory,
            line=line,
            writes=feed.writes,
            reads=feed.reads,
            stdin=feed.stdin,
            is_fed=feed.is_fed,
            sets=feed.sets,
            elsewhere=scope.elsewhere,
        )
        self.reader.add(command, scope, depth)


def _chained(node: Node) -> list[Link]:
    """Return the parts of `a && b > c || d`, each with its redirections.

    A long chain has a deep tree, so the tree is walked without recursion. The grammar assigns a last redirection
    to the whole chain, but a shell assigns it to the last command.
    """
    parts: list[Link] = []
    redirects: list[Node] = []
    while True:
        body = node.child_by_field_name("body") if node.type == "redirected_statement" else None
        if body is not None and body.type == "list":
            redirects = [*node.children_by_field_name("redirect"), *redirects]
            node = body
        elif node.type == "list" and node.named_child_count > 1:
            is_else = any(child.type == "||" for child in node.children)
            node, *rest = node.named_children
            parts.append((rest.pop(), redirects, is_else))
            parts += [(each, [], is_else) for each in reversed(rest)]
            redirects = []
        else:
            return [(node, redirects, False), *reversed(parts)]
