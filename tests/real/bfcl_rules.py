"""Why four_step and the Berkeley Function-Calling Leaderboard differ on a row: each deliberate difference has a name here.

A rule takes a joined row (question, output, official verdict) and four_step's report, and says whether it explains why one
passes what the other fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from service import Report, score
from service.core.methods.bfcl import standardise

Row = Mapping[str, Any]
Rule = Callable[[Row, Report], bool]


def text_normalised(row: Row, report: Report) -> bool:
    """The leaderboard ignores case, spaces and `,./-_*^` in all texts; four_step in none that may be a code, key or address.

    Holds where nothing but wrong arguments is found, and none once both sides are written as the leaderboard reads them.
    """
    if not row["official"]["valid"] or "wrong_argument" not in codes(report):
        return False
    plain = {
        "calls": _mapped(row["calls"], standardise),
        "possible_answer": _mapped(row["possible_answer"], standardise),
    }
    return "wrong_argument" not in codes(score(request({**row, **plain}, "four_step")))


def schema_stricter(row: Row, report: Report) -> bool:
    """The leaderboard takes an argument that breaks the tool's own schema: a value outside its enum, or another type of item
    than the schema's, where the key holds one of that type too."""
    return row["official"]["valid"] and any(code.startswith("schema_") for code in codes(report))


def marker_is_a_value(row: Row, report: Report) -> bool:
    """The marker of an optional argument, "", is among the accepted values, so that the leaderboard takes an empty text
    for any optional argument. To four_step it says that the argument may be absent."""
    given = [value for call in row["calls"] or () for arguments in call.values() for value in arguments.values()]
    return row["official"]["valid"] and "" in given and _found(report, '""')


def undecodable_is_no_call(row: Row, report: Report) -> bool:
    """The leaderboard takes output that it cannot decode for no call; four_step sees a call with unreadable arguments, or
    of a tool that is not on offer, where none was due."""
    return row["official"]["valid"] and row["calls"] is None and "over_call" in codes(report)


def numbers_equal(row: Row, report: Report) -> bool:
    """The leaderboard tells 1 from 1.0 inside an array; to four_step they are one number.

    Holds where the leaderboard's own method passes once the integers in arrays are written with a point.
    """
    if row["official"]["valid"] or report.verdict != "pass":
        return False
    pointed = {**row, "calls": _mapped(row["calls"], _pointed)}
    return score(request(pointed, "bfcl_ast")).verdict == "pass"


def text_read(row: Row, report: Report) -> bool:
    """The leaderboard counts line breaks and apostrophes in texts; to four_step a text that reads the same is the same."""
    return not row["official"]["valid"] and report.verdict == "pass" and _found(report, " reads as ")


RULES: tuple[Rule, ...] = (
    text_normalised, schema_stricter, marker_is_a_value, undecodable_is_no_call, numbers_equal, text_read,
)  # fmt: skip


def request(row: Row, rubric: str) -> dict[str, Any]:
    """The row as a request to score it."""
    return {"rubric": rubric, "trace": {**row, "format": "bfcl"}, "judges": "off"}


def codes(report: Report) -> set[str]:
    """The codes of all findings."""
    return {finding.code for finding in report.findings()}


def _found(report: Report, text: str) -> bool:
    return any(text in finding.message for finding in report.findings())


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with every leaf changed; keys stay."""
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return [_mapped(item, change) for item in value] if isinstance(value, list) else change(value)


def _pointed(leaf: Any) -> Any:
    return float(leaf) if isinstance(leaf, int) and not isinstance(leaf, bool) else leaf
