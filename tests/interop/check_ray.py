# /// script
# dependencies = [
#   "ray[data,default]==2.55.1",
#   "--editable=.",
# ]
# ///
"""Ray: the parts of `callgrade score --on ray` and of `ScoreBatches`, with a process killed, a second start, and one budget."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Thread

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ |= {
    "CALLGRADE_HOME": str(Path.cwd() / "callgrade"),
    "PYTHONPATH": str(ROOT),
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}

import ray  # noqa: E402

import callgrade  # noqa: E402
from service.cli import main  # noqa: E402
from tests.faults.provider import TOKENS_IN, TOKENS_OUT, Provider, serving  # noqa: E402

FILES, ROWS, JUDGED = 8, 1_000, 400  # enough that the first part is there long before the last
PRICED = "gpt-4o-mini"
USD_PER_CALL = TOKENS_IN * 0.15e-6 + TOKENS_OUT * 0.6e-6
BUDGET_USD = 0.005


def build_request(number: int, judges: str) -> dict:
    function = {"name": "get_order", "arguments": json.dumps({"order_id": number})}
    answer = f"Order {number} was shipped with Northmail."
    messages = [
        {"role": "user", "content": f"Where is order {number}?"},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps({"carrier": "Northmail", "state": "shipped"})},
        {"role": "assistant", "content": answer},
    ]
    expected = {"calls": [{"tool": "get_order", "args": {"order_id": number if number % 7 else 0}}]}
    return {"trace": {"id": f"t{number}", "messages": messages}, "expected": expected, "judges": judges}


def run(*args: object) -> tuple[int, str]:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = main([str(one) for one in args])
    return code, said.getvalue()


def read_parts(folder: Path) -> list[str]:
    return [line for part in sorted(folder.glob("part-*.jsonl")) for line in part.read_text("utf-8").splitlines()]


def find_children(parent: int, name: str) -> list[int]:
    found = subprocess.run(["pgrep", "-f", "-P", str(parent), name], capture_output=True, text=True, check=False)
    return [int(one) for one in found.stdout.split()]


def kill_worker(folder: Path, killed: list[int]) -> None:
    """Kill a worker of this cluster once the first part is there."""
    while not killed:
        if any(folder.glob("part-*")):
            for raylet in find_children(os.getpid(), "raylet/raylet"):
                killed += find_children(raylet, "PartWorker.score")[:1]
            for one in killed:
                os.kill(one, signal.SIGKILL)


def check_killed(traces: Path, folder: Path) -> None:
    reference = folder.with_suffix(".jsonl")
    assert run("score", traces, "--format", "ndjson", "--output", reference)[0] == 5
    killed: list[int] = []
    thread = Thread(target=kill_worker, args=[folder, killed], daemon=True)
    thread.start()
    code, said = run("score", traces / "*.jsonl", "--on", "ray", "--output", folder)
    assert (code, killed != [], f"{traces}/0.jsonl:2: " in said) == (5, True, True), said
    assert Counter(read_parts(folder)) == Counter(reference.read_text("utf-8").splitlines())
    before = {part: part.stat().st_mtime_ns for part in folder.iterdir()}
    code, again = run("score", traces / "*.jsonl", "--on", "ray", "--output", folder)
    assert f"{FILES} parts in {folder}, {FILES} of them from before" in again, again
    assert before == {part: part.stat().st_mtime_ns for part in folder.iterdir()}
    counted = [next(line for line in text.splitlines() if "scored with" in line) for text in (said, again)]
    assert counted[0] == counted[1], counted
    print(f"{FILES * ROWS} traces, process {killed[0]} killed: every report once; the second start scored none")


def check_batches(folder: Path) -> None:
    """`ScoreBatches` over a table of requests, whose output `summarize` reads."""
    requests = [json.dumps(build_request(n, "off")) for n in range(ROWS)]
    table = str(folder / "requests")
    ray.data.from_items(
        [{"n": n, "request": one} for n, one in enumerate(requests)], override_num_blocks=2
    ).write_parquet(table)
    scored = ray.data.read_parquet(table).map_batches(callgrade.ScoreBatches, concurrency=1, batch_size=64)
    scored.write_parquet(str(folder / "scored"))
    rows = ray.data.read_parquet(str(folder / "scored")).take_all()
    expected = {n: callgrade.report_json(callgrade.score(json.loads(one))).decode() for n, one in enumerate(requests)}
    assert {row["n"]: row["report"] for row in rows} == expected
    assert run("summarize", folder / "scored", "--assert", "pass_rate >= 0.8")[0] == 0
    print(f"{ROWS} rows of Parquet through ScoreBatches, as `callgrade.score` has them")


def check_budget(traces: Path, folder: Path) -> None:
    with serving(Provider(latency=0.02)) as provider:
        os.environ |= {"CALLGRADE_JUDGE_MODEL": f"openai/{PRICED}", "CALLGRADE_JUDGE_API_BASE": provider.base()}
        os.environ |= {"CALLGRADE_JUDGE_API_KEY": "none", "CALLGRADE_JUDGE_IN_FLIGHT": "4"}
        code, said = run("score", traces, "--on", "ray", "--output", folder, "--budget-usd", BUDGET_USD)
        spent = len(provider.paid) * USD_PER_CALL
        causes = Counter(one["cause"] for line in read_parts(folder) for one in json.loads(line)["open"])
        assert 0 < spent <= BUDGET_USD, (spent, said)
        assert causes["budget_exhausted"] > 0, (causes, said)
        assert code == 2, said  # some traces fail by code, which comes before undecided
    print(f"a budget of ${BUDGET_USD}: ${spent:.4f} spent by two workers, then {dict(causes)}")


def main_check() -> None:
    home = Path.cwd()
    traces, judged = home / "traces", home / "judged"
    for folder in (traces, judged):
        folder.mkdir()
    for n in range(FILES):
        lines = [json.dumps(build_request(n * ROWS + row, "off")) for row in range(ROWS)]
        (traces / f"{n}.jsonl").write_text("\n".join([lines[0], "{", *lines[1:]]), "utf-8")
    for n in range(2):
        lines = [json.dumps(build_request(n * JUDGED + row, "live")) for row in range(JUDGED // 2)]
        (judged / f"{n}.jsonl").write_text("\n".join(lines), "utf-8")
    store = 200 * 2**20
    ray.init(num_cpus=2, object_store_memory=store, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        check_killed(traces, home / "parts")
        check_batches(home)
        check_budget(judged, home / "judged-parts")
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main_check()
