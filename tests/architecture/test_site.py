"""The documentation site: the build, its pages and its links."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOWN = ("docs", "rules", "bench/results", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def build(top: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of the repository at `top`. A warning counts as an error."""
    words = ("-q", "-W", "--keep-going", "-d", str(site / "doctrees"), str(top / "docs"), str(site))
    return subprocess.run([sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False)


def test_site_build_writes_every_page_and_an_offline_search_index(tmp_path: Path) -> None:
    """Sphinx builds a page for each document, and a search index that a browser loads without a server."""
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (tmp_path / name).is_file() or str(name) == "adr/README.html"
    index = (tmp_path / "searchindex.js").read_text()
    assert index.startswith("Search.setIndex(")
    assert "witness" in index
    assert "changelog" in (tmp_path / "index.html").read_text()


def test_site_build_fails_when_a_link_is_broken(tmp_path: Path) -> None:
    """The build of a copy with a link to a missing page fails, and the error names that page."""
    top = tmp_path / "top"
    for name in (*SHOWN, "pyproject.toml"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, top / name)
    with (top / "docs/tutorial/first-task.md").open("a") as page:
        page.write("\n[nowhere](no-such-page.md)\n")
    done = build(top, tmp_path / "site")
    assert done.returncode != 0
    assert "no-such-page.md" in done.stderr
