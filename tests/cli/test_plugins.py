"""`--plugin`: checks of the user's own on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.cli_run import Run

REQUEST = {"trace": {"events": [{"user": "Hi"}, {"assistant": "Yes."}]}, "judges": "off"}


def test_a_plugin_adds_its_checks_to_every_rubric(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import callgrade\n@callgrade.check('mine_alone', stage='effect')\ndef mine_alone(trace): return False\n"
    )
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "bad.py").write_text("1 / 0\n")
    ran = run("score", "-", "--plugin", "mine.py", "--format", "ndjson", stdin=json.dumps(REQUEST).encode())
    [report] = [json.loads(line) for line in ran.lines]
    assert report["first_failing_stage"] == "effect"
    for file, told in (
        ("empty.py", "registers no check"),
        ("bad.py", "ZeroDivisionError"),
        ("none.py", "No such file"),
    ):
        refused = run("score", "-", "--plugin", file, stdin=b"{}")
        assert (refused.code, told in refused.err) == (4, True), refused.err
