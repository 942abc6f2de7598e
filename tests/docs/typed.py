"""A page as it is typed: every block of commands, in order, into one shell that holds what the page has made so far."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.docs.pages import Block, Page, find_port

BEGIN, END = "@@ begin", "@@ end"
WAITED_S = 120
PORT = "8000"
OTHER_SHELL = """{command} > serve.log 2>&1 & served=$!
trap 'kill $served' EXIT
curl -s -o /dev/null --retry {waited} --retry-connrefused --retry-delay 1 localhost:{port}/healthz
"""
"""A command that does not return runs in a shell of its own; the next one is typed once it answers."""


class Typed(NamedTuple):
    """A command as it was typed, and what became of it."""

    command: str
    code: int
    printed: str


def type_page(page: Page, folder: Path, environment: Mapping[str, str], *, left_out: str | None = None) -> list[Typed]:
    """Types the page in a folder, each command on a line of its own. `left_out`: a kind of blocks not to type."""
    port = str(find_port())
    commands = list(_list_commands(page, left_out))
    lines = [_write(command, block, port) for command, block in commands]
    printed = folder.parent / "printed"
    with printed.open("w", encoding="utf-8") as file, (folder.parent / "said").open("w", encoding="utf-8") as said:
        subprocess.run(
            ["/bin/sh"],
            input="".join(lines).encode(),
            cwd=folder,
            env=dict(environment),
            stdout=file,
            stderr=said,
            timeout=1800,
            check=False,
        )
    parts = re.findall(rf"^{BEGIN}\n(.*?)\n?{END} (\d+)\n", printed.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    typed = [(command, block) for command, block in commands if block.note != "file"]
    assert len(parts) == len(typed), (folder.parent / "said").read_text("utf-8")
    return [Typed(command, int(code), text) for (command, _), (text, code) in zip(typed, parts, strict=True)]


def _list_commands(page: Page, left_out: str | None) -> Iterator[tuple[str, Block]]:
    for block in page.blocks:
        if block.note == "file":
            yield block.name, block
        elif block.language == "sh" and block.kind != left_out:
            for line in block.body.splitlines():
                yield line, block


def _write(command: str, block: Block, port: str) -> str:
    """What the shell reads for a command, or for a file that the page tells the reader to save."""
    if block.note == "file":
        return f"cat > {shlex.quote(command)} <<'END_OF_FILE'\n{block.body}END_OF_FILE\n"
    command = command.replace(PORT, port)
    if block.kind == "serve":
        command = OTHER_SHELL.format(command=command, waited=WAITED_S, port=port)
    return f"echo '{BEGIN}'\n{command}\ncode=$?; echo; echo \"{END} $code\"\n"
