"""Score on Ray: `callgrade score --on ray`, and `ScoreBatches` for pipelines of Ray Data.

Every block of the input becomes a part: a file in the output folder, whose name follows from the block and from what it is scored
with. A part gets its name once it is complete, so after a crash nothing that has its name is done again.
"""

from __future__ import annotations

import asyncio
import glob
import importlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast
from uuid import uuid4

from pydantic_core import from_json, to_json

from service import __version__
from service.asking.local_servers import LOCAL_DEADLINE_S
from service.asking.shared_limits import SharedBudget, SharedGate, SharedLimits
from service.cli.inputs import Inputs, RecordRequest, Refusal, read_inputs, read_report_record, require_records
from service.cli.options import read_settings
from service.cli.scoring import Result, score_in_loop
from service.cli.screen import pluralize, say
from service.cli.tally import Tally
from service.cli.views import render_result
from service.core.report import ENGINE, JudgeMode
from service.engine import Engine
from service.errors import InputError, JudgeError, Problem, SettingsError
from service.reading.blocks import Block, list_blocks
from service.reading.opening import list_files, load_module, restore_url
from service.reading.places import RecordPlace
from service.reading.strict_json import parse_strictly
from service.reading.trace_files import scan_records
from service.settings import Settings
from service.wiring import build_engine, build_gate


@dataclass(frozen=True)
class PartOrder:
    """What a worker needs to score parts. `inputs` come without their engine; `digest` is of what parts are scored with."""

    inputs: Inputs
    folder: str
    form: Literal["jsonl", "parquet"]
    digest: str
    limits: SharedLimits | None = None

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
        found = {path.rpartition("/")[2] for path in files.ls(folder, detail=False)}
        others = sorted(one for one in found - set(map(self.name_part, blocks)) if one.startswith("part-"))
        if others:
            message = f"{self.folder} holds parts of another input, option or version, such as {others[0]}"
            raise SettingsError.at("--output", f"{message}; name another folder, or remove them")


def digest_inputs(inputs: Inputs) -> str:
    """Digest what decides the reports besides the traces: version, options, rubrics, judges and fits."""
    engine, settings = inputs.engine, inputs.settings
    judge = (settings.judge_model, settings.judge_reply, settings.judge_api_base)
    parts: list[object] = [__version__, ENGINE, inputs.judges, inputs.tools, inputs.layout, inputs.expected]
    parts += [settings.judges, judge, sorted(fit.id for fit in engine.fits)]
    parts += [one.digest for one in (*engine.registry, *([inputs.rubric] if inputs.rubric else []))]
    parts += sorted(one.digest for one in engine.registry.judges.values())
    return sha256(to_json(parts)).hexdigest()


class PartWorker:
    """Scores blocks, one after the other, with one engine and the same connections to judges."""

    def __init__(self, order: PartOrder) -> None:
        self._order = order
        self._inputs = replace(order.inputs, engine=_build_shared_engine(order.inputs.settings, order.limits))
        self._files, self._folder = order.open_folder()
        self._loop = asyncio.Runner()

    def score(self, block: Block) -> Tally:
        """Score a block unless its part is there; count it. SettingsError if this machine would score it with something else."""
        if digest_inputs(self._inputs) != self._order.digest:
            message = "a worker has another version, or other rubrics, judges or fits, than the machine that started it"
            raise SettingsError.at("CALLGRADE_HOME", message)
        path = f"{self._folder}/{self._order.name_part(block)}"
        inputs = replace(self._inputs, files=(block,), guessed=Counter[str](), left_out=Counter[str]())
        tally = Tally(guessed=inputs.guessed, left_out=inputs.left_out)
        if self._files.exists(path):
            tally.parts = 1
            self._count_part(path, tally)
        else:
            results = list(score_in_loop(inputs, inputs, self._loop))
            self._write(path, results)
            for one in results:
                tally.add(one)
        return tally

    def _write(self, path: str, results: Sequence[Result]) -> None:
        if not results:  # nothing in the block is to be scored
            return
        data = b"".join([render_result(one) + b"\n" for one in results])
        if self._order.form == "parquet":
            packed, table = io.BytesIO(), load_module("pyarrow", "to write Parquet").table(_build_columns(results))
            load_module("pyarrow.parquet", "to write Parquet").write_table(table, packed)
            data = packed.getvalue()
        temporary = f"{self._folder}/.{uuid4().hex}"
        self._files.pipe_file(temporary, data)
        self._files.mv(temporary, path)
        if self._inputs.engine.days is not None:  # gives back what the budget holds and was not spent
            self._loop.run(self._inputs.engine.days.close())

    def _count_part(self, path: str, tally: Tally) -> None:
        """Count a part that is there, as it was counted when it was scored."""
        for record in require_records(scan_records(self._files.unstrip_protocol(path), limits=self._inputs.limits)):
            error: Any = record.value.get("error")
            if error and "rubric" not in record.value:
                problems = [Problem(one["pointer"], one["detail"]) for one in error["errors"]]
                tally.add(Refusal(RecordPlace(error["source"], error["line"]), InputError(problems)))
            else:
                report = read_report_record(record.value)
                tally.add_report(report, report.trace_id or str(record.place))


def _build_columns(results: Iterable[Result]) -> dict[str, Sequence[str]]:
    """Build the columns `report` and `error`: JSON, or empty."""
    texts = [(isinstance(one, Refusal), render_result(one).decode()) for one in results]
    errors = [to_json(from_json(text)["error"]).decode() if refused else "" for refused, text in texts]
    return {"report": ["" if refused else text for refused, text in texts], "error": errors}


def score_on_ray(
    inputs: Inputs, tally: Tally, folder: Path, form: Literal["jsonl", "parquet"], *, budget_usd: float | None
) -> None:
    """Score on the cluster of Ray that is set up, else on one of this machine; count part by part."""
    ray = load_ray()
    limits = None if inputs.engine.judging is None else share_limits(budget_usd)
    shipped = replace(inputs, engine=cast("Engine", None), files=(), guessed=Counter(), left_out=Counter())
    order = PartOrder(shipped, restore_url(folder), form, digest_inputs(inputs), limits)
    sources = [str(one) for file in inputs.files for name in _expand(str(file)) for one in list_files(name)]
    cut = partial(ray.remote(list_blocks).remote, limits=inputs.limits, layout=inputs.layout)
    blocks: list[Block] = list(chain.from_iterable(ray.get([cut(source) for source in dict.fromkeys(sources)])))
    order.prepare_folder(blocks)
    # Ray starts a worker anew that died, and gives it its block again.
    actor = ray.remote(PartWorker).options(num_cpus=1, max_restarts=-1, max_task_retries=-1)
    size = min(len(blocks), max(1, int(ray.cluster_resources().get("CPU", 1))))
    workers = importlib.import_module("ray.util").ActorPool([actor.remote(order) for _ in range(size)])

    def give(worker: Any, block: Block) -> Any:
        return worker.score.remote(block)

    for one in workers.map_unordered(give, blocks):
        tally.merge(one)
    say(f"{pluralize(len(blocks), 'part')} in {order.folder}, {tally.parts} of them from before")


def _expand(name: str) -> list[str]:
    """List the files that a pattern means; one in a URL is left to `list_files`."""
    local = "*" in name and restore_url(name) == name and not Path(name).exists()
    return sorted(glob.glob(name, recursive=True)) or [name] if local else [name]  # noqa: PTH207 (absolute patterns too)


def load_ray() -> Any:
    """Import Ray, and connect to its cluster or start one on this machine. SettingsError if it is not installed."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        raise SettingsError.at("--on", "Ray is not installed: pip install 'ray[data,default]'") from None
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    return ray


# Judges.


def share_limits(budget_usd: float | None = None) -> SharedLimits:
    """Start the actor that keeps one budget, and one gate per model, for all workers that it is given to."""
    ray, settings = load_ray(), read_settings()
    lease_s = 30.0 + (settings.judge_deadline or LOCAL_DEADLINE_S)
    actor = ray.remote(SharedLimits).options(name=f"callgrade-{uuid4().hex}", num_cpus=0, max_concurrency=100_000)
    return cast("SharedLimits", _Remote(actor.remote(partial(build_gate, settings), budget_usd, lease_s=lease_s)))


class _Remote:
    """An actor whose methods are awaited as if it were here."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor

    def __reduce__(self) -> tuple[object, ...]:
        return _Remote, (self.actor,)

    def __getattr__(self, name: str) -> Callable[..., object]:
        async def ask(*args: object) -> object:
            try:
                return await getattr(self.actor, name).remote(*args)
            except importlib.import_module("ray.exceptions").RayError:
                raise JudgeError("provider_error", "the actor that keeps the shared limits does not answer") from None

        return ask


def _build_shared_engine(settings: Settings, limits: SharedLimits | None) -> Engine:
    engine = build_engine(settings, make_gate=None if limits is None else partial(SharedGate, limits))
    # It stands where a tenant's day does: what all requests of the process spend from.
    engine.days = None if limits is None else cast("Any", SharedBudget(limits))
    return engine


class ScoreBatches:
    """Scores the rows of a dataset: `dataset.map_batches(ScoreBatches, concurrency=2, batch_size=256)`.

    A row's `column` is a request as JSON, as POST /v1/score takes it. The row gets the columns `report` and `error`, JSON too, of
    which one is empty. An instance keeps its engine, rubrics and connections to judges from batch to batch.
    """

    def __init__(
        self,
        column: str = "request",
        *,
        rubric: str | None = None,
        expected: Path | None = None,
        judges: JudgeMode | None = None,
        limits: SharedLimits | None = None,
    ) -> None:
        """`rubric`, `expected`, `judges`: as for `callgrade score`. `limits`: what `share_limits` returned."""
        inputs = read_inputs((), rubric=rubric, expected=expected, judges=judges)
        self._inputs = replace(inputs, engine=_build_shared_engine(inputs.settings, limits))
        self._column = column
        self._loop = asyncio.Runner()

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Score a batch, given by columns."""
        records = [self._read(n, text) for n, text in enumerate(batch[self._column], start=1)]
        return {**batch, **_build_columns(score_in_loop(records, self._inputs, self._loop))}

    def _read(self, number: int, text: Any) -> RecordRequest | Refusal:
        place = RecordPlace(self._column, number)
        try:
            body = parse_strictly(text.encode() if isinstance(text, str) else to_json(text), self._inputs.limits)
            if not isinstance(body, dict):
                raise InputError.at("", "expected a request, an object in JSON")
            return RecordRequest(place, False, body, body, self._inputs.build_request(body), None)
        except InputError as error:
            return Refusal(place, error)
