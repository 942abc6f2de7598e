"""The pages for readers: README.md, CONTRIBUTING.md and docs/*.md, with the blocks of code in them.

A comment above a block says what it is: `<!-- file: NAME -->` is a file that the page's commands find in their folder,
`<!-- output: COMMAND -->` what that command prints. `<!-- uses: PATH -->` anywhere in a page adds the files of another page.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.jobs.process import until
from tests.launchers import find_launchers

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
BLOCK = re.compile(r"(?:<!-- (\w+): ([^\n]+) -->\n)?```(\w+)(?: (\w+))?\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code; `note` and `name` stand in the comment above it, `kind` behind its language."""

    note: str
    name: str
    language: str
    kind: str
    body: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page by its path below the root."""

    path: str

    @property
    def text(self) -> str:
        return (ROOT / self.path).read_text("utf-8")

    @property
    def blocks(self) -> list[Block]:
        return [Block(*found) for found in BLOCK.findall(self.text)]

    @property
    def files(self) -> dict[str, str]:
        """What the page itself shows as files, by name."""
        return {block.name: block.body for block in self.blocks if block.note == "file"}

    def place(self, folder: Path) -> Path:
        """Writes the files of the page, and of those it uses, into a folder."""
        for path in [*re.findall(r"<!-- uses: (.+?) -->", self.text), self.path]:
            for name, body in Page(path).files.items():
                (folder / name).write_text(body, "utf-8")
        return folder

    def block(self, kind: str) -> str:
        return next(block.body for block in self.blocks if block.kind == kind)

    def noted(self, note: str, name: str) -> str:
        return next(block.body for block in self.blocks if (block.note, block.name) == (note, name))

    def section(self, heading: str) -> str:
        """What stands below a heading, up to the next one."""
        return re.split(r"\n#+ ", self.text.split(f"\n{heading}\n")[1])[0]

    def table_names(self, heading: str = "") -> set[str]:
        """The names in code style in the first column of the tables of the page, or of those below a heading."""
        section = self.section(heading) if heading else self.text
        rows = [line for line in section.splitlines() if line.startswith("| `")]
        return {name for row in rows for name in re.findall(r"`([\w/{}]+)`", row.split("|")[1])}


README = Page("README.md")
PAGES = [
    README,
    Page("CONTRIBUTING.md"),
    *(Page(str(file.relative_to(ROOT))) for file in sorted((ROOT / "docs").rglob("*.md"))),
]


def pages_with(kind: str) -> list[Page]:
    """The pages that have a block of a kind; README.md is typed as a whole, by test_readme.py."""
    return [page for page in PAGES if page != README and any(block.kind == kind for block in page.blocks)]


def find_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def wait_for(port: int) -> None:
    """Until somebody listens; loading takes long on a busy machine."""

    def listens() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    until(listens)


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command as a reader would, with a home of its own."""
    outside = {} if folder == ROOT else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # a reader has not what our tests load
    environment = {
        "PATH": os.pathsep.join([str(find_launchers()), str(BIN), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "PYTEST_PLUGINS": "pytest_callgrade",  # an environment from before the plugin does not name it
        "COLUMNS": "100",
        "HOME": str(folder),
        **outside,
    }
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
