"""What the assistant says that it has done, against its calls: a table, by four_step too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service import score
from service.core.evidence.actions.told import CLAIMED_ACTION
from service.core.evidence.narration.answers import narrate
from service.intake import read_trace
from service.packaged_files import read_yaml

FILE = Path(__file__).parents[1] / "data" / "evidence" / "actions.yaml"
TABLE: Any = read_yaml(FILE.read_text("utf-8"), source=FILE.name)


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_case(case: dict[str, Any]):
    trace = {"format": "callgrade", "events": case["events"], "tools": TABLE["tools"]}
    claims = [claim for text in narrate(read_trace(trace)) for claim in text.claims if claim.code == CLAIMED_ACTION]
    assert [claim.verdict for claim in claims] == ([] if case["want"] is None else [case["want"]])
    report = score({"trace": trace, "judges": "off"})
    assert (report.verdict == "fail") >= (case["want"] == "contradicted")
    assert (CLAIMED_ACTION in {finding.code for finding in report.findings()}) == (case["want"] == "contradicted")
