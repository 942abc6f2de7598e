"""One table: ours beside references on the same cases, in interleaved rounds; it is printed, and kept in docs/operating.md."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from service import __version__
from service.core.rubric_extension import Extension
from service.engine import Engine, report_json
from service.registry import Registry
from tests.benchmarks.scoring import BESIDE_THE_GATES, GATES_ALONE, build_floor, build_grounding
from tests.benchmarks.workload import add_results, cases, large_cases, request

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operating.md"
MEASURED = re.compile(r"(?<=<!-- measured: speed -->\n).*?(?=<!-- end -->)", re.DOTALL)
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
ROUNDS = 36
LIBRARIES = ("pydantic", "jsonschema-rs", "fastapi")

Round = Callable[[], Mapping[str, float]]
"""CPU microseconds a case, by what was done."""


class Row(NamedTuple):
    """Ours beside a reference: what is done, by which names both were timed."""

    what: str
    ours: str
    reference: str


def measure() -> None:
    """Prints the table and writes the page."""
    source, workload = cases()
    with _open_peers(workload) as (versions, time_peers):
        times = _collect([_build_ours(workload), time_peers])
    rows = [
        Row("four gates", "gates", "floor"),
        Row("four gates, all calls agree", "agreeing", "floor"),
        Row("four_step, judges off", "four_step", "floor"),
        Row("four gates", "gates", "JSON round trip"),
        Row("four_step, results and answer", "four_step, answered", "four gates of the same"),
        Row("large cases, four gates", "large gates", "JSON round trip, large"),
        Row("large cases, four_step", "large", "large gates"),
        Row("grounding: 10 kB answer, 100 kB result", "grounding", "json.loads of the result"),
        *[Row("four gates", "gates", name) for name in versions],
        *[Row("four_step, judges off", "four_step", name) for name in versions],
    ]
    told = _render(rows, times, f"{len(workload)} cases of {source}", versions)
    print(told)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MEASURED.sub(lambda _: f"\n{told}\n", page), encoding="utf-8")


def _build_ours(workload: Sequence[dict[str, Any]]) -> Round:
    engine = Engine(Registry())
    engine.registry.add(engine.registry.find(Extension(extends="four_step", id=GATES_ALONE, without=BESIDE_THE_GATES)))
    whole = [request(case) for case in workload]
    answered = [request(add_results(case)) for case in workload]
    large = [request(case) for case in large_cases()]
    gates = only_gates(whole)
    ground, parse = build_grounding()
    agreeing = [one for one in gates if engine.score(one).all_passed]
    floor = build_floor(workload)

    def score(requests: Sequence[Any]) -> float:
        return _time(lambda: [report_json(engine.score(one)) for one in requests]) / len(requests)

    def copy(requests: Sequence[Any]) -> float:
        return _time(lambda: [json.loads(json.dumps(one)) for one in requests]) / len(requests)

    def time_ours() -> Mapping[str, float]:
        return {
            "gates": score(gates),
            "JSON round trip": copy(gates),
            "four_step, answered": score(answered),
            "four gates of the same": score(only_gates(answered)),
            "large": score(large),
            "large gates": score(only_gates(large)),
            "JSON round trip, large": copy(large),
            "grounding": _time(ground),
            "json.loads of the result": _time(parse),
            "agreeing": score(agreeing),
            "four_step": score(whole),
            "floor": _time(floor) / len(workload),
        }

    return time_ours


def only_gates(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one | {"rubric": GATES_ALONE} for one in requests]


def _time(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1e6


@contextmanager
def _open_peers(workload: Sequence[dict[str, Any]]) -> Iterator[tuple[Mapping[str, str], Round]]:
    """The versions of the peers at hand, and what times them once; none where their environment is not there."""
    if not PEERS_PYTHON.exists():
        yield {}, dict[str, float]
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(workload, file)
        file.flush()
        command = [str(PEERS_PYTHON), "-I", str(Path(__file__).with_name("peers.py")), file.name]
        environment = os.environ | {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "OPENAI_API_KEY": "none"}
        with subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        ) as peers:
            assert peers.stdin is not None
            assert peers.stdout is not None
            ask, answers = peers.stdin, peers.stdout

            def time_peers() -> Mapping[str, float]:
                ask.write("\n")
                ask.flush()
                return {name: seconds * 1e6 / len(workload) for name, seconds in json.loads(answers.readline()).items()}

            yield json.loads(answers.readline()), time_peers
            ask.close()


def _collect(parts: Sequence[Round]) -> Mapping[str, Sequence[float]]:
    """All times by name, part after part in each round, so that what else the machine does meets all alike."""
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for part in parts:
            for name, spent in part().items():
                found.setdefault(name, []).append(spent)
    return found


def _render(rows: Sequence[Row], times: Mapping[str, Sequence[float]], source: str, versions: Mapping[str, str]) -> str:
    libraries = [f"{name} {metadata.version(name)}" for name in LIBRARIES]
    lines = [
        "The speed of scoring, compared with other tools; `make bench` writes this table. Times are CPU time of one core for",
        f"one case, from the parsed request to the bytes of the report: the minimum of {ROUNDS} interleaved rounds. The spread",
        "says how much longer the median round took. `floor` is jsonschema-rs with a cached validator, plus equality of dicts.",
        "Peers are timed on the same calls, including building their test cases. None of them checks schemas, and only",
        "uipath's three evaluators (arguments, order, counts) say what differs. `make peers` installs them. Large cases have",
        "30 tools with long schemas, texts in five scripts and a result of 20 kB.",
        "",
        "| what | ours, us | spread | reference | us | spread | ours / reference |",
        "|---|---|---|---|---|---|---|",
        *[_render_row(row, times) for row in rows],
        "",
        f"{source}. callgrade {__version__}, Python {platform.python_version()}, {', '.join(libraries)};",
        f"{', '.join(f'{name} {version}' for name, version in versions.items()) or 'no peers installed'};",
        f"{platform.machine()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}. `tests/core/test_counts.py` asserts the",
        "number of function calls per case, which depends on no machine.",
    ]
    return "\n".join(lines) + "\n"


def _render_row(row: Row, times: Mapping[str, Sequence[float]]) -> str:
    ours, other = times[row.ours], times[row.reference]
    cells = [
        row.what,
        f"{min(ours):.1f}",
        _render_spread(ours),
        row.reference,
        f"{min(other):.1f}",
        _render_spread(other),
    ]
    return f"| {' | '.join([*cells, f'{min(ours) / min(other):.2f}'])} |"


def _render_spread(spent: Sequence[float]) -> str:
    median = sorted(spent)[len(spent) // 2]
    return f"{100 * (median / min(spent) - 1):.0f} %"
