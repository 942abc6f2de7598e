"""A pytest run: its engine, its cassette, and the properties that carry results to the summary and to JUnit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from service.asking.budget.reservations import Spending
from service.asking.judging import NOT_CACHED, Judges, Judging
from service.cli.options import read_settings
from service.cli.screen import pluralize
from service.cli.tally import VERDICTS
from service.core.conclusion.judge_answers import NO_JUDGE
from service.core.judging.prompts import Completion, Prompt
from service.core.report import JudgeMode, Report
from service.errors import JudgeError, SettingsError
from service.settings import Settings
from service.testing.cassette import Cassette, CassetteHead, read_cassette
from service.testing.checks import TraceChecker
from service.wiring import build_engine, build_judging, choose_route

PROPERTY_PREFIX = "callgrade_"
"""The prefix of the test properties that this plugin sets."""

Property = tuple[str, str]
RecordedRows = dict[str, Any]
"""The head of a cassette and its new rows, in a form that xdist can send."""


class _NoModel:
    """Stands in for the model in a run that asks none."""

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str = "") -> Completion:  # noqa: ARG002
        raise JudgeError("unreachable", "this run replays a cassette and asks no model")


@dataclass
class CheckSession:
    """What all tests of a process share."""

    checker: TraceChecker
    recording: Cassette | None
    """The cassette to which this run adds replies; None if it does not record."""

    @classmethod
    def open(cls, path: Path, *, record: bool, off: bool) -> CheckSession:
        """Open a session that replays a cassette file or, with `record`, adds to it. SettingsError if no judge can be asked."""
        settings, cassette = read_settings(), read_cassette(path)
        if record:
            if not settings.judge_model:
                raise SettingsError.at("CALLGRADE_JUDGE_MODEL", "--callgrade-record asks a judge, and no model is set")
            head = CassetteHead(settings.judge_model, tuple(sorted(settings.judge_models)), choose_route(settings))
            cassette = cassette if cassette is not None and cassette.head == head else Cassette(head)
        engine = build_engine(replace(settings, judge_model="", judges=None))
        mode: JudgeMode | None = None
        if cassette is not None:
            mode = "live" if record else "cached"
            engine.judging = _build_judging(settings, cassette, record=record)
        checker = TraceChecker(engine, "off" if off else mode, hint=lambda report: explain_open(report, path))
        return cls(checker, cassette if record else None)

    def close(self) -> RecordedRows | None:
        """Close the connections, and return what was recorded; None if this run does not record."""
        self.checker.close()
        if self.recording is None:
            return None
        return {"head": asdict(self.recording.head), "added": self.recording.added}


def _build_judging(settings: Settings, cassette: Cassette, *, record: bool) -> Judging | None:
    if not record:
        head = cassette.head
        return Judging(_NoModel(), cassette, Judges(head.model, frozenset(head.models), route=head.route))
    judging = build_judging(settings, cache=cassette)
    if judging is not None:  # the route is in the cassette's head, not in its keys
        judging.judges = replace(judging.judges, api_base=None, form="auto")
    return judging


def explain_open(report: Report, path: Path) -> str:
    """Explain what to do about unanswered questions: they are missing from the cassette, or there is no cassette."""
    missing = sum(one.reason == NOT_CACHED.reason for one in report.open)
    if missing:
        questions = f"{pluralize(missing, 'question')} for a judge not on the cassette {path.name}"
        return f"{questions}: record with `pytest --callgrade-record`, and CALLGRADE_JUDGE_MODEL set"
    if any(one.reason == NO_JUDGE for one in report.open):
        advice = "record replies with `pytest --callgrade-record`, or use only what code decides"
        return f'no judge is asked in this run: {advice} with judges="off"'
    return ""


def list_properties(report: Report) -> Iterator[Property]:
    """Yield the properties of a check, for JUnit and for the summary."""
    yield PROPERTY_PREFIX + "verdict", report.verdict
    yield PROPERTY_PREFIX + "score", f"{report.score:.4f}" if report.is_measured else ""
    yield PROPERTY_PREFIX + "coverage", "" if report.coverage is None else f"{report.coverage:.4f}"
    if report.first_failing_stage:
        yield PROPERTY_PREFIX + "first_failing_stage", report.first_failing_stage
    if report.scope == "code":
        yield PROPERTY_PREFIX + "scope", "code"
    missing = sum(one.reason == NOT_CACHED.reason for one in report.open)
    if missing:
        yield PROPERTY_PREFIX + "missing", str(missing)
    if report.provenance.replies:
        yield PROPERTY_PREFIX + "replies", str(report.provenance.replies)


def summarize_properties(tests: Iterable[tuple[str, Iterable[Property]]]) -> list[str]:
    """Build the lines of the summary from (test name, properties) pairs; empty if nothing was checked."""
    rows = [(name, key.removeprefix(PROPERTY_PREFIX), value) for name, properties in tests for key, value in properties]
    verdicts = Counter(value for _, key, value in rows if key == "verdict")
    counts = ", ".join(f"{verdicts[one]} {one}" for one in VERDICTS if verdicts[one])
    lines = [f"{pluralize(verdicts.total(), 'trace')} checked: {counts}"] if verdicts else []
    code = sum(key == "scope" for _, key, _ in rows)
    if code:
        lines.append(f"judges were off for {pluralize(code, 'trace')}: code alone looked at them")
    replies, missing = (sum(int(value) for _, key, value in rows if key == name) for name in ("replies", "missing"))
    if replies or missing:
        lines.append(f"judged: {pluralize(replies, 'reply', 'replies')}; not on the cassette: {missing}")
    return [*lines, *(f"{name}: {value}" for name, key, value in rows if key == "runs")]
