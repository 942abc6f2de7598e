"""LangSmith runs: one run, with or without `child_runs`, or `runs`, the API's list of all runs of a trace."""

from __future__ import annotations

from collections.abc import Iterator

from service.core.json.members import as_text, list_objects
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format
from service.intake.runs import NOTHING, LoggedRun, locate, read_log
from service.intake.wrapping import WrapperContents

_TYPES = frozenset({"chain", "llm", "tool", "retriever", "embedding", "prompt", "parser"})


def _read(record: Cursor) -> WrapperContents:
    starts = list(record.list_nodes("runs")) if "runs" in record else [record]
    if len({str(run.peek("trace_id")) for run in starts}) > 1:
        raise InputError.at("/runs", "expected the runs of one trace, not of several")
    nodes = [node for start in starts for node in _walk(start)]
    ids = {as_text(node.peek("id")) for node in nodes} - {None}
    runs = [_read_run(node, outermost=as_text(node.peek("parent_run_id")) not in ids) for node in nodes]
    named = as_text(record.peek("id")) or next((text for run in nodes if (text := as_text(run.peek("trace_id")))), None)
    return read_log(record.out, runs, named, others=[record] if "runs" in record else [])


def _walk(run: Cursor) -> Iterator[Cursor]:
    """Iterate over a run and those below it, in the order in which they stand."""
    yield run
    for child in run.list_nodes("child_runs"):
        yield from _walk(child)


def _read_run(node: Cursor, *, outermost: bool) -> LoggedRun:
    kind = as_text(node.peek("run_type")) or ""
    parameters = node.child("extra").child("invocation_params")
    if kind not in _TYPES:
        node.leave("a run of an unknown type", keep=True)
    return LoggedRun(
        node,
        kind,
        (node.take("inputs"), f"{node.path}/inputs"),
        (node.take("outputs"), f"{node.path}/outputs"),
        as_text(node.peek("start_time")) or as_text(node.peek("dotted_order")) or "",
        outermost,
        node.text("name"),
        locate(parameters, "tools") if "tools" in parameters else NOTHING,
        f"{node.path}/error" if node.peek("error") else "",
    )


FORMATS = (
    Format(
        name="langsmith",
        read=_read,
        recognise=lambda record: any("run_type" in run for run in (record, *list_objects(record.get("runs")))),
        score=84,
        summary="A LangSmith run, or all `runs` of a trace.",
        hint="a run_type, or runs that have one",
    ),
)
