"""Where the values of real data come from: right conversations, tau-bench's runs, and answers with human error spans.

The floors are a little below what was measured; the figures of a run are printed with `-s`.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.core.grounding.call_sources import CallSources
from service.core.grounding.provenance import PROVED, Located, locate_arguments
from service.core.grounding.texts import ground_texts
from service.core.trace import Trace
from service.intake import read_trace
from tests.bulk import WHOLE, share

pytestmark = [pytest.mark.shared_data, pytest.mark.whole]


def show(*told: object) -> None:
    sys.stdout.write(" ".join(map(str, told)) + "\n")


def rows_of(shared_data: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(shared_data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def locate(trace: Trace) -> list[Located]:
    sources, tools = CallSources(trace), {tool.name: tool for tool in trace.tools or ()}
    return [one for step in trace.steps for one in locate_arguments(step, tools.get(step.call.name), sources)]


# Right conversations: what is flagged in them is a false alarm, or a fault of the data.


def tooltalk(shared_data: Path) -> Iterator[list[dict[str, Any]]]:
    for row in rows_of(shared_data, "labels/dialog_tooltalk_all"):
        known = f"The current time is {row['metadata'].get('timestamp')}. {json.dumps(row['user'])}"
        events: list[dict[str, Any]] = [{"system": known}]
        for said in row["conversation"]:
            for api in said.get("apis", []):
                request = api["request"]
                call = {"name": request["api_name"], "arguments": request["parameters"]}
                events.append({"call": call, "result": api["response"] or {"error": api["exception"]}})
            events.append({said["role"]: said["text"]})
        yield events


def apibank(shared_data: Path) -> Iterator[list[dict[str, Any]]]:
    roles = {"User": "user", "AI": "assistant"}
    for row in rows_of(shared_data, "labels/dialog_apibank_all"):
        yield [
            {roles[said["role"]]: said["text"]}
            if said["role"] in roles
            else {
                "call": {"name": said["api_name"], "arguments": said["param_dict"]},
                "result": said["result"]["output"],
            }
            for said in row["turns"]
        ]


def bfcl(shared_data: Path) -> Iterator[dict[str, Any]]:
    for row in rows_of(shared_data, "labels/calls_bfcl_v4_cal"):
        calls = row["possible_answer"] or []
        if calls and all(len(call) == 1 for call in calls):
            events = [{said["role"]: said["content"]} for said in row["question"][0]]
            for n, (name, given) in enumerate(pair for call in calls for pair in call.items()):
                arguments = {key: first(options) for key, options in given.items() if not is_left_out(options)}
                events.append({"call": {"name": name, "arguments": arguments}} | ({"parallel": True} if n else {}))
            tools = [{key: tool[key] for key in ("name", "description", "parameters")} for tool in row["function"]]
            yield {"events": events, "tools": tools}


def is_left_out(options: Any) -> bool:
    return isinstance(options, list) and (not options or options[0] == "")


def first(options: Any) -> Any:
    value = options[0] if isinstance(options, list) and options else options
    return {key: first(inner) for key, inner in value.items()} if isinstance(value, dict) else value


@pytest.fixture(scope="module")
def gold(shared_data: Path) -> dict[str, list[Trace]]:
    dialogs = {"tooltalk": tooltalk(shared_data), "apibank": apibank(shared_data)}
    records = {name: [{"events": events} for events in found] for name, found in dialogs.items()}
    records["bfcl"] = list(bfcl(shared_data))
    return {
        name: [read_trace({"format": "callgrade", **record}) for record in found] for name, found in records.items()
    }


FAULTS = {  # all read by hand: each is a fault of the data
    "tooltalk": [],
    "apibank": ["1234"],  # a user id that nobody gave
    "bfcl": ["landlord@email.com"],  # made up
}
MOST_SUSPECTED = 0.025
"""Days of meetings that come again every week, which no result holds."""


@pytest.mark.parametrize(("name", "leaves"), [("tooltalk", 700), ("apibank", 1_100), ("bfcl", 5_800)])
def test_right_arguments_raise_no_false_alarm(gold, name: str, leaves: int):
    found = [one for trace in gold[name] for one in locate(trace)]
    proved = [one.note for one in found if one.grounded.code in PROVED]
    suspected = [one.note for one in found if one.grounded.code and one.grounded.code not in PROVED]
    show(
        f"\n{name}: {len(found)} arguments, {Counter(one.grounded.origin for one in found)}, {proved}, suspected {suspected}"
    )
    assert len(found) >= leaves
    assert [note for note in proved if not any(value in note for value in FAULTS[name])] == []
    assert len(suspected) <= MOST_SUSPECTED * len(found)


# tau-bench: real calls and real answers, without labels.


@pytest.fixture(scope="module")
def runs(shared_data: Path) -> list[Trace]:
    tools = json.loads((shared_data / "tau_airline" / "tools.json").read_text("utf-8"))
    return [read_trace({**run, "format": "tau", "tools": tools}) for run in rows_of(shared_data, "tau_airline/runs")]


def test_where_the_arguments_of_real_calls_come_from(runs):
    found = [one.grounded for trace in runs for one in locate(trace)]
    show("\ntau-bench:", len(found), "arguments,", dict(Counter((one.origin, one.code) for one in found)))
    assert len(found) == 2_315
    assert sum(one.origin != "nowhere" for one in found) >= 2_120
    assert not [one for one in found if one.code in PROVED]


def test_real_answers_are_not_proved_wrong(runs):
    found = [text for trace in share(runs, one_in=3) for text in ground_texts(trace)]
    origins = Counter(value.origin for text in found for value in text.values)
    against = Counter((one.code, one.proved) for text in found for one in text.findings)
    show(f"\ntau-bench: {len(found)} texts after results, {dict(origins)}, {dict(against)}")
    assert len(found) >= (480 if WHOLE else 130)
    assert not [code for code, proved in against if proved]
    assert origins["found"] >= 0.5 * origins.total()
    assert origins["nowhere"] <= 0.06 * origins.total()


# Answers with human error spans.
