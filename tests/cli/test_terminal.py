"""What a person at a terminal sees while a job gets on: a real one, by a pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path

from service.cli.scoring import MAX_IN_FLIGHT
from tests.cli.served import environment, served
from tests.faults.provider import Provider, serving
from tests.jobs.process import request
from tests.launchers import find_launchers

RECORDS = 40


def shown(*args: str, folder: Path, provider: Provider | None = None) -> tuple[int, str]:
    """The exit code of a command, and what came to the terminal that is its standard error."""
    ours, theirs = pty.openpty()
    environ = environment(folder, provider or Provider(), TERM="xterm", COLUMNS="100")
    with subprocess.Popen(
        [find_launchers() / "callgrade", *args], cwd=folder, env=environ, stdout=subprocess.DEVNULL, stderr=theirs
    ) as run:
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
    os.close(ours)
    return run.returncode, seen.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other side has ended
        return b""


def test_a_bar_shows_how_far_a_batch_is_and_goes_away(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(request(n))}\n" for n in range(RECORDS)))
    with served(tmp_path, Provider(latency=0.05)) as there:
        words = ["jobs", "submit", "in.jsonl", "--wait", "--server", there.url, "--key", there.key]
        code, seen = shown(*words, folder=tmp_path)
    assert code == 0
    counts = {int(done) for done in re.findall(rf"(\d+) of {RECORDS} items", seen)}
    assert RECORDS in counts
    assert re.search(rf"{RECORDS} of {RECORDS} items, .*(free|\$|price unknown)", seen)
    assert "\x1b[?25l" in seen  # the cursor is hidden while the bar is drawn
    assert seen.rindex("\x1b[?25h") > seen.rindex(f" of {RECORDS} items")  # and is back when it is gone


def test_a_count_shows_how_far_a_run_is_and_goes_away(tmp_path: Path) -> None:
    count = MAX_IN_FLIGHT + 1
    with serving(Provider(latency=0.05)) as provider:
        (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(request(n))}\n" for n in range(count)))
        code, seen = shown("score", "in.jsonl", folder=tmp_path, provider=provider)
        quiet_code, quiet = shown("score", "in.jsonl", "--quiet", folder=tmp_path, provider=provider)
    assert (code, quiet_code) == (0, 0)
    assert f"{count} of {count} traces" in seen
    assert seen.rindex("\x1b[?25h") > seen.rindex(f" of {count} traces")
    assert f" of {count} traces" not in quiet
