"""Build the documentation site: `python .github/site/build.py FOLDER` writes FOLDER/site.

The pages of hybridsim/docs and some documents beside the code are copied to FOLDER/docs under the
addresses of NAVIGATION; the pages of the reference are generated there from the package itself, so
that nothing is stored twice.  Zensical, the successor of Material for MkDocs by the same authors,
then makes the site.  It reads MkDocs's configuration, and nothing here is its own: another builder
of such sites would take FOLDER as it is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import commands
import documents
import families
import links
import python_names
import scenario_keys
import sections
import words
from navigation import BESIDE, DOCS, NAVIGATION

ROOT = Path(__file__).resolve().parents[2]

CONFIGURATION = {
    "site_name": "hybridsim",
    "site_description": "What would an SSD cache do for your disks?",
    "docs_dir": "docs",
    "site_dir": "site",
    "use_directory_urls": False,  # so that the site can be read from a folder
    "theme": {
        "name": "material",
        "font": False,  # no request to another host
        "features": ["navigation.indexes", "navigation.top", "content.code.copy"],
        "palette": [
            {"media": "(prefers-color-scheme: light)", "scheme": "default"},
            {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
        ],
    },
    "markdown_extensions": [
        "attr_list",
        "tables",
        {"toc": {"permalink": True}},
        "pymdownx.superfences",
        {"pymdownx.highlight": {"guess_lang": False}},
    ],
    "nav": NAVIGATION,
}


def stage(folder: Path) -> None:
    """Write what the site is made of: the pages, the files they link to, and the configuration."""
    sources = {
        path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / DOCS).as_posix()
        for path in sorted((ROOT / DOCS).rglob("*.md"))
    } | BESIDE
    generated: dict[str, str] = {}
    for module in (commands, documents, families, python_names, scenario_keys, words):
        generated |= module.pages()
    target = folder / "docs"
    shutil.rmtree(folder, ignore_errors=True)
    for place, address in sources.items():
        text, files = links.for_site((ROOT / place).read_text(encoding="utf-8"), place, sources)
        write(target / address, sections.linked(text, place))
        for file, copy in files.items():
            (target / copy).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, target / copy)
    for address, text in generated.items():
        write(target / address, sections.linked(text, f"{DOCS}/{address}"))
    listed = [*_addresses(NAVIGATION)]
    assert sorted(listed) == sorted([*sources.values(), *generated]), "a page without its place"
    # JSON is YAML
    write(folder / "mkdocs.yml", json.dumps(CONFIGURATION, indent=2))


def _addresses(part: object) -> Iterator[str]:
    """Yield the addresses in a part of the navigation."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        yield from _addresses([*part.values()])
    elif isinstance(part, list):
        for each in part:
            yield from _addresses(each)


def write(path: Path, text: str) -> None:
    """Write a file, and the folders that it needs; no page is written twice."""
    assert not path.exists(), path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> int:
    """Build the site in the folder of the command line; return zensical's exit code."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: python .github/site/build.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    stage(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml"]
    return subprocess.run(command, cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
