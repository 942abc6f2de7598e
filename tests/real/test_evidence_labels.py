"""Where the values of real data come from: right conversations, tau-bench's runs, and answers with human error spans.

The floors are a little below what was measured; the figures of a run are printed with `-s`.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.core.grounding.arguments import PROVED, CallReader, Located
from service.core.grounding.facts import Site
from service.core.grounding.ground import ground_text
from service.core.grounding.history import History
from service.core.grounding.known import KnownFacts
from service.core.grounding.origins import Grounded
from service.core.grounding.store import FactStore
from service.core.grounding.texts import ground_texts
from service.core.trace import Trace
from service.intake.reading import read_trace
from tests.bulk import WHOLE, share

pytestmark = [pytest.mark.shared_data, pytest.mark.whole]


def show(*told: object) -> None:
    sys.stdout.write(" ".join(map(str, told)) + "\n")


def rows_of(shared_data: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(shared_data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def locate(trace: Trace) -> list[Located]:
    reader, tools = CallReader(History(trace)), {tool.name: tool for tool in trace.tools or ()}
    return [one for step in trace.steps for one in reader.locate(step, tools.get(step.call.name))]


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


def test_a_digit_changed_in_an_identifier_of_a_real_call_is_noticed(runs):
    """Every identifier with a digit, one digit changed: nobody gave it."""
    tried = noticed = 0
    for trace in runs[::4]:
        for step in trace.steps:
            for name, value in (step.call.arguments or {}).items():
                if name.endswith("_id") and isinstance(value, str) and any(c.isdigit() for c in value):
                    wrong = re.sub(r"\d", lambda m: str((int(m.group()) + 5) % 10), value, count=1)
                    call = replace(step.call, arguments={**(step.call.arguments or {}), name: wrong})
                    changed = [
                        one.grounded for one in CallReader(History(trace)).locate(replace(step, call=call), None)
                    ]
                    tried += 1
                    noticed += any(
                        one.origin == "nowhere" and one.code and one.pointer.endswith(name) for one in changed
                    )
    show(f"\n{noticed} of {tried} wrong identifiers noticed")
    assert tried >= 80
    assert noticed >= 0.95 * tried


def test_real_answers_are_not_proved_wrong(runs):
    found = [text for trace in share(runs, one_in=3) for text in ground_texts(History(trace))]
    origins = Counter(value.origin for text in found for value in text.values)
    against = Counter((one.code, one.proved) for text in found for one in text.findings)
    show(f"\ntau-bench: {len(found)} texts after results, {dict(origins)}, {dict(against)}")
    assert len(found) >= (480 if WHOLE else 130)
    assert not [code for code, proved in against if proved]
    assert origins["found"] >= 0.5 * origins.total()
    assert origins["nowhere"] <= 0.06 * origins.total()


def spoil(trace: Trace) -> Iterator[tuple[str, Trace, int, int]]:
    """The trace with the last digit of one found value changed, value by value: its sort, message and place."""
    for text in ground_texts(History(trace)):
        for one in [one for one in text.values if one.origin == "found" and one.end][:4]:
            said = trace.messages[text.message].text
            digit = max((n for n in range(one.start or 0, one.end or 0) if said[n].isdigit()), default=None)
            if digit is not None:
                other = str((int(said[digit]) + 3) % 10)
                message = replace(trace.messages[text.message], text=said[:digit] + other + said[digit + 1 :])
                messages = (*trace.messages[: text.message], message, *trace.messages[text.message + 1 :])
                yield sort_of(one), replace(trace, messages=messages), text.message, digit


def sort_of(one: Grounded) -> str:
    if "$" in one.value:
        return "money"
    if ":" in one.value:
        return "time"
    return "identifier" if re.fullmatch(r"(?=.*[A-Z])[A-Z0-9]+", one.value) else "other"


def test_a_digit_changed_in_a_real_answer_is_noticed(runs):
    """By a finding, or as a value that stands nowhere."""
    tried, opened, shown = Counter[str](), Counter[str](), Counter[str]()
    for trace in share(runs[::5], one_in=4):
        for sort, wrong, message, digit in spoil(trace):
            [text] = [text for text in ground_texts(History(wrong)) if text.message == message]
            tried[sort] += 1
            opened[sort] += any(one.start <= digit < one.end for one in text.findings)
            shown[sort] += any(
                (one.start or 0) <= digit < (one.end or 0) and one.origin == "nowhere" for one in text.values
            )
    show("\nopened, shown:", {sort: f"{opened[sort]}, {shown[sort]} of {tried[sort]}" for sort in tried})
    assert opened["identifier"] >= 0.8 * tried["identifier"]
    assert shown["identifier"] >= 0.9 * tried["identifier"]
    assert shown["money"] >= 0.3 * tried["money"]


# Answers with human error spans.


SETS = ("groundedness_d2teval_cal", "groundedness_quintd1_train")


def test_values_that_stand_nowhere_are_marked_by_people_far_more_often(shared_data: Path):
    of: dict[str, Counter[str]] = defaultdict(Counter)
    marked: dict[str, Counter[str]] = defaultdict(Counter)
    for row in [row for name in SETS for row in share(rows_of(shared_data, f"labels/{name}"), one_in=20)]:
        store = FactStore()
        store.add_value(row["payload"], Site("/payload", "result"))
        spans = [(span["start"], span["end"]) for annotator in row["human"] for span in annotator["spans"]]
        for one in ground_text(row["response"], "/answer", KnownFacts(store)):
            inside = any(start < one.mention.end and one.mention.start < end for start, end in spans)
            for domain in (row["domain"], "all"):
                of[domain][one.grounded.origin] += 1
                marked[domain][one.grounded.origin] += inside
    for domain, counts in of.items():
        show(
            f"\n{domain}: marked", {origin: f"{marked[domain][origin]} of {count}" for origin, count in counts.items()}
        )
    rate = {origin: marked["all"][origin] / of["all"][origin] for origin in ("nowhere", "found")}
    assert rate["nowhere"] >= 2 * rate["found"]
    assert of["all"]["nowhere"] <= 0.06 * of["all"].total()
