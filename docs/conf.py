"""The configuration of Sphinx for the documentation site.

`make docs` builds the site into `build/docs`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# The pages of the site that show a file outside of `docs`, each with the path of this file in the repository.
SHOWN_AS = {
    "explanation/architecture": "ARCHITECTURE.md",
    "explanation/decisions": "docs/adr/README.md",
    "explanation/results": "bench/results/results.md",
    "project/changelog": "CHANGELOG.md",
    "project/contributing": "CONTRIBUTING.md",
    "project/rules": "rules/README.md",
    "project/security": "SECURITY.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")

project = "Outlive"
author = "the Outlive contributors"
release = re.findall(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[0]

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["site", "adr/README.md"]
nitpicky = True

html_theme = "furo"
html_title = "Outlive"
html_static_path = ["site"]
html_show_sourcelink = False
html_copy_source = False
# mermaid.min.js is not in the repository: `make docs` gets it from npm. Without this file, diagrams are shown as text.
html_js_files = ["mermaid.min.js", "diagrams.js"]


def setup(app: Sphinx) -> None:
    """Register `show_page`, and a lexer that shows diagrams as text."""
    app.connect("source-read", show_page)
    app.add_lexer("mermaid", TextLexer)


def show_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace a page by the file that it shows, and rewrite its links for the site."""
    file = HERE / f"{docname}.md"
    text = source[0]
    if docname in SHOWN_AS:
        file = ROOT / SHOWN_AS[docname]
        app.env.note_dependency(file)
        text = file.read_text(encoding="utf-8") + source[0]
    source[0] = LINK.sub(lambda link: led(link, file, docname), text)


def led(link: re.Match[str], file: Path, docname: str) -> str:
    """Return a Markdown link with its target rewritten for the site.

    Returns only the text of the link if the site has no page for the target.
    """
    picture, text, path, anchor = link.groups(default="")
    target = (file.parent / path).resolve()
    name = target.relative_to(ROOT).as_posix()
    for page, shown in SHOWN_AS.items():
        if name == shown:
            return f"[{text}](/{page}.md{anchor})"
    if picture:
        return f"![{text}]({os.path.relpath(target, (HERE / docname).parent)})"
    return f"[{text}](/{target.relative_to(HERE).as_posix()}{anchor})" if target.is_relative_to(HERE) else text
