"""Score on Ray: `callgrade score --on ray`, and `ScoreBatches` for pipelines of Ray Data.

Every block of the input becomes a part: a file in the output folder, whose name follows from the block and from what it is scored
with. A part gets its name once it is complete, so after a crash nothing that has its name is done again.
"""

from __future__ import annotations

import asyncio
import glob
import importlib
import pickle
import re
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar, cast
from uuid import uuid4

from pydantic_core import to_json

from service import __version__
from service.asking.local_servers import MAX_SECONDS
from service.asking.shared_limits import Limits, SharedBudget, SharedGates, SharedLimits
from service.cli.inputs import Inputs, RecordRequest, Refusal, read_inputs, read_report_record
from service.cli.options import read_settings
from service.cli.scoring import Result, score_in_loop
from service.cli.screen import MAX_LISTED_REFUSALS, pluralize, say
from service.cli.tally import Tally
from service.cli.views import JsonReports, ParquetReports, render_result
from service.core.report import ENGINE, JudgeMode
from service.engine import Engine
from service.errors import InputError, JudgeError, Problem, SettingsError
from service.reading.blocks import Block, list_blocks
from service.reading.opening import list_files, load_module, restore_url
from service.reading.places import BadRecord, RecordPlace
from service.reading.strict_json import parse_strictly
from service.reading.trace_files import scan_records
from service.settings import Settings
from service.wiring import build_engine, build_gates

T = TypeVar("T")


@dataclass
class Counts:
    """What scoring came to."""

    tally: Tally
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    """The first refused records."""
    guessed: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    done_before: int = 0
    """Parts that were there already."""

    def count(self, results: Iterable[Result]) -> Iterator[Result]:
        """Count results, and yield them."""
        for result in results:
            self.tally.add(result)
            self.refusals += [result] if isinstance(result, Refusal) else []
            yield result

    def merge(self, other: Counts) -> None:
        """Count what another counted."""
        self.tally.merge(other.tally)
        self.refusals += other.refusals[: MAX_LISTED_REFUSALS - len(self.refusals)]
        self.guessed += other.guessed
        self.left_out += other.left_out
        self.done_before += other.done_before


@dataclass(frozen=True)
class Order:
    """What a worker needs to score parts. `inputs` come without their engine; `digest` is that of what parts are scored with."""

    inputs: Inputs
    folder: str
    form: Literal["jsonl", "parquet"]
    digest: str
    limits: Limits | None = None
    requires_certified: bool = False

    def name_part(self, block: Block) -> str:
        """Name the part of a block."""
        whole = "\0".join([self.digest, block.source, str(block.number), block.digest])
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", block.source.rpartition("/")[2])[:80]
        return f"part-{stem}-{block.number:05d}-{sha256(whole.encode()).hexdigest()[:16]}.{self.form}"

    def open_folder(self) -> tuple[Any, str]:
        """Return the file system of the folder, as fsspec has it, and the path there."""
        return load_module("fsspec", "to score on Ray").url_to_fs(self.folder, use_listings_cache=False)

    def prepare_folder(self, blocks: Iterable[Block]) -> None:
        """Create the folder. SettingsError if it holds parts of something else, which would be counted with these."""
        files, folder = self.open_folder()
        files.makedirs(folder, exist_ok=True)
        names = {self.name_part(block) for block in blocks}
        others = [name for path in files.ls(folder, detail=False) if (name := path.rpartition("/")[2]) not in names]
        others = sorted(name for name in others if name.startswith("part-"))
        if others:
            message = f"{self.folder} holds parts of another input, option or version, such as {others[0]}"
            raise SettingsError.at("--output", f"{message}; name another folder, or remove them")


def digest_inputs(inputs: Inputs) -> str:
    """Digest what decides the reports besides the traces: version, options, rubrics, judges and fits."""
    engine, settings = inputs.engine, inputs.settings
    judge = (settings.judge_model, settings.judge_fallback, settings.judge_reply, settings.judge_api_base)
    parts: list[object] = [__version__, ENGINE, inputs.judges, inputs.tools, inputs.layout, inputs.expected]
    parts += [settings.judges, sorted(settings.judge_mask), judge, sorted(fit.id for fit in engine.fits)]
    parts += [one.digest for one in (*engine.registry, *([inputs.rubric] if inputs.rubric else []))]
    parts += sorted(one.digest for one in engine.registry.judges.values())
    return sha256(to_json(parts)).hexdigest()


class PartWorker:
    """Scores blocks, one after the other, with one engine and the same connections to judges."""

    def __init__(self, order: Order) -> None:
        """SettingsError if this machine would score with something else than the one that gave the order."""
        self._order = order
        self._inputs = replace(order.inputs, engine=_build_shared_engine(order.inputs.settings, order.limits))
        if digest_inputs(self._inputs) != order.digest:
            message = "a worker has another version, or other rubrics, judges or fits, than the machine that started it"
            raise SettingsError.at("CALLGRADE_HOME", message)
        self._files, self._folder = order.open_folder()
        self._loop = asyncio.Runner()

    def __call__(self, row: Mapping[str, Block]) -> dict[str, bytes]:
        """Score a block unless its part is there; return the pickled `Counts`."""
        block = row["item"]
        path = f"{self._folder}/{self._order.name_part(block)}"
        inputs = replace(self._inputs, files=(block,), guessed=Counter[str](), left_out=Counter[str]())
        tally = Tally(requires_certified=self._order.requires_certified)
        counts = Counts(tally, guessed=inputs.guessed, left_out=inputs.left_out)
        if self._files.exists(path):
            self._count_part(path, counts)
        else:
            self._write(path, counts.count(score_in_loop(inputs, inputs, self._loop)))
        counts.refusals = [replace(one, raw=b"") for one in counts.refusals[:MAX_LISTED_REFUSALS]]
        return {"counts": pickle.dumps(counts)}

    def _write(self, path: str, results: Iterator[Result]) -> None:
        first = next(results, None)
        if first is None:  # a block that has nothing to score
            return
        temporary = f"{self._folder}/.{uuid4().hex}"
        with self._files.open(temporary, "wb") as stream:
            reports = JsonReports(stream, lines=True) if self._order.form == "jsonl" else ParquetReports(stream)
            for result in chain([first], results):
                reports.add(result)
            reports.close()
        self._files.mv(temporary, path)
        if isinstance(self._inputs.engine.days, SharedBudget):
            self._loop.run(self._inputs.engine.days.close())

    def _count_part(self, path: str, counts: Counts) -> None:
        """Count a part that is there, as it was counted when it was scored."""
        counts.done_before = 1
        for record in scan_records(self._files.unstrip_protocol(path), limits=self._inputs.limits):
            if isinstance(record, BadRecord):
                raise record.error.in_file(str(record.place))
            error: Any = record.value.get("error")
            if error and "rubric" not in record.value:
                problems = [Problem(one["pointer"], one["detail"]) for one in error["errors"]]
                list(counts.count([Refusal(RecordPlace(error["source"], error["line"]), InputError(problems))]))
            else:
                report = read_report_record(record.value)
                counts.tally.add_report(report, report.trace_id or str(record.place))


def score_on_ray(
    inputs: Inputs, tally: Tally, refusals: list[Refusal], folder: Path, form: str, *, budget_usd: float | None
) -> bool:
    """Score on the cluster of Ray that is set up, else on one of this machine; return whether Ctrl-C ended it.

    Adds to the tally, to the refused records and to what was guessed, part by part.
    """
    ray, total = load_ray(), Counts(tally, refusals, inputs.guessed, inputs.left_out)
    limits = None if inputs.engine.judging is None else share_limits(budget_usd)
    shipped = replace(inputs, engine=cast("Engine", None), files=(), guessed=Counter(), left_out=Counter())
    kind = "parquet" if form == "parquet" else "jsonl"
    order = Order(shipped, restore_url(folder), kind, digest_inputs(inputs), limits, tally.requires_certified)
    sources = [str(one) for file in inputs.files for name in _expand(str(file)) for one in list_files(name)]
    cut = partial(ray.remote(list_blocks).remote, limits=inputs.limits, layout=inputs.layout)
    try:
        blocks: list[Block] = list(chain.from_iterable(ray.get([cut(source) for source in dict.fromkeys(sources)])))
        order.prepare_folder(blocks)
        workers = min(len(blocks), max(1, int(ray.cluster_resources().get("CPU", 1))))
        rows = ray.data.from_items(blocks, override_num_blocks=len(blocks))
        for row in rows.map(PartWorker, fn_constructor_args=[order], concurrency=workers).iter_rows():
            total.merge(pickle.loads(row["counts"]))  # noqa: S301 (of a worker of ours)
    except KeyboardInterrupt:
        say("ended by Ctrl-C; the same command goes on with the parts that are missing")
        return True
    say(f"{pluralize(len(blocks), 'part')} in {order.folder}, {total.done_before} of them from before")
    return False


def _expand(name: str) -> list[str]:
    """List the files that a pattern means; a URL is listed by who opens it."""
    local = "*" in name and restore_url(name) == name and not Path(name).exists()
    return sorted(glob.glob(name, recursive=True)) or [name] if local else [name]  # noqa: PTH207 (absolute patterns too)


def load_ray() -> Any:
    """Import Ray, and connect to its cluster or start one on this machine. SettingsError if it is not installed."""
    try:
        importlib.import_module("ray.data")
        ray: Any = importlib.import_module("ray")
    except ImportError:
        raise SettingsError.at("--on", "Ray Data is not installed: pip install 'ray[data]'") from None
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


# Judges.


def share_limits(budget_usd: float | None = None) -> Limits:
    """Start the actor that keeps one budget and one limit of requests per model for all workers that it is given to."""
    ray, settings = load_ray(), read_settings()
    lease_s = 30.0 + (settings.judge_deadline or MAX_SECONDS)
    actor = ray.remote(SharedLimits).options(name=f"callgrade-{uuid4().hex}", num_cpus=0, max_concurrency=100_000)
    return _RemoteLimits(actor.remote(build_gates(settings), budget_usd, lease_s=lease_s))


class _RemoteLimits:
    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def hold(self, worker: str, usd: float, *, settled: bool = False) -> bool:
        return await self._wait(self._actor.hold.remote(worker, usd, settled=settled))

    async def enter(self, ticket: str, model: str, account: str, patience: float) -> int | JudgeError:
        return await self._wait(self._actor.enter.remote(ticket, model, account, patience))

    async def leave(self, ticket: str, error: BaseException | None = None) -> None:
        with suppress(JudgeError):
            await self._wait(self._actor.leave.remote(ticket, error))

    async def _wait(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except importlib.import_module("ray.exceptions").RayError:
            raise JudgeError("provider_error", "the actor that keeps the shared limits does not answer") from None


def _build_shared_engine(settings: Settings, limits: Limits | None) -> Engine:
    if limits is None:
        return build_engine(settings)
    engine = build_engine(settings, gates=SharedGates(limits))
    engine.days = SharedBudget(limits)
    return engine


class ScoreBatches:
    """Scores the rows of a dataset: `dataset.map_batches(ScoreBatches, concurrency=2, batch_size=256)`.

    A row's `column` is a request as JSON, as POST /v1/score takes it. The row gets the columns `report` and `error`, JSON too, of
    which one is empty. An instance keeps its engine, rubrics and connections to judges from batch to batch.
    """

    def __init__(
        self,
        *,
        column: str = "request",
        rubric: str | None = None,
        expected: str | None = None,
        judges: JudgeMode | None = None,
        limits: Limits | None = None,
    ) -> None:
        """`rubric`, `expected`, `judges`: as for `callgrade score`. `limits`: what `share_limits` returned."""
        inputs = read_inputs((), rubric=rubric, expected=None if expected is None else Path(expected), judges=judges)
        self._inputs = replace(inputs, engine=_build_shared_engine(inputs.settings, limits)) if limits else inputs
        self._column = column
        self._loop = asyncio.Runner()

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Score a batch, given by columns."""
        records = [self._read(n, text) for n, text in enumerate(batch[self._column], start=1)]
        results = list(score_in_loop(records, self._inputs, self._loop))
        texts = [(isinstance(one, Refusal), render_result(one).decode()) for one in results]
        reports = ["" if refused else text for refused, text in texts]
        return {**batch, "report": reports, "error": [text if refused else "" for refused, text in texts]}

    def _read(self, number: int, text: Any) -> RecordRequest | Refusal:
        place = RecordPlace(self._column, number)
        try:
            body = parse_strictly(text.encode() if isinstance(text, str) else to_json(text), self._inputs.limits)
            if not isinstance(body, dict):
                raise InputError.at("", "expected a request, an object in JSON")
            return RecordRequest(place, False, body, body, self._inputs.build_request(body), None)
        except InputError as error:
            return Refusal(place, error)
