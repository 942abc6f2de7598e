"""Record our conversation with real libraries, each in an environment of its own: `make interop`, `make interop ONLY=name`.

A library is a script beside this file: `record_NAME.py`, whose head lists its packages (PEP 723), or `record_NAME.mjs`, whose
first line lists those of npm. What a script exports goes to `tests/data/interop`, with times, ids and places of this machine
evened out, so that another run of the same versions leaves little difference. `versions.json` there says what wrote each file.

`check_NAME.py` records nothing: it runs callgrade itself with the library, and fails where it should.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.interop.model_server import serve

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DATA = ROOT / "tests" / "data" / "interop"
ENVIRONMENTS = ROOT / ".venv-interop"
VERSIONS = DATA / "versions.json"
TIMEOUT_S = 360
MAX_BYTES = 30_000
QUIET = {
    "ANONYMIZED_TELEMETRY": "false", "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_DISABLE_DOTENV": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "MLFLOW_DISABLE_TELEMETRY": "true",
    "RAGAS_DO_NOT_TRACK": "true",
}  # fmt: skip
"""Every library's telemetry is off."""


def main(names: list[str]) -> int:
    """Record the libraries of these names, or all; name those that failed."""
    found = sorted([*HERE.glob("record_*"), *HERE.glob("check_*")], key=lambda path: path.stem.partition("_")[2])
    scripts = {path.stem.partition("_")[2]: path for path in found}
    if unknown := [name for name in names if name not in scripts]:
        print(f"no script for {', '.join(unknown)}; there are {', '.join(scripts)}", file=sys.stderr)
        return 2
    failed: list[str] = []
    with serve() as url:
        for name in names or scripts:
            print(f"{name} ...", flush=True)
            try:
                record(name, scripts[name], url)
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed.append(name)
    if failed:
        print(f"not recorded: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def record(name: str, script: Path, url: str) -> None:
    """Install a library, have the conversation with it, and keep what it exported."""
    home = ENVIRONMENTS / name
    start, versions = (install_npm if script.suffix == ".mjs" else install_python)(script, home)
    with tempfile.TemporaryDirectory() as temporary:
        out, place = Path(temporary) / "out", Path(temporary) / "home"
        out.mkdir()
        place.mkdir()
        given = {
            "HOME": str(place), "LOGNAME": "user", "PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "TZ": "UTC",
            "INTEROP_URL": url, "INTEROP_OUT": str(out), "INTEROP_NPM": str(home), "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"{url}/v1",
        }  # fmt: skip
        subprocess.run([*start, str(script)], env=QUIET | given, cwd=place, check=True, timeout=TIMEOUT_S)
        port = url.rpartition(":")[2]
        places = {url: "http://localhost", str(place): "/home/user", f'"server.port": {port}': '"server.port": 80'}
        written = {file.name: read_exported(file, places) for file in sorted(out.iterdir())}
    if script.stem.startswith("check_"):
        return
    if not written:
        raise ValueError("nothing was exported")
    for file, data in written.items():
        (DATA / file).write_bytes(data)
    known = json.loads(VERSIONS.read_text("utf-8")) if VERSIONS.exists() else {}
    known = {file: which for file, which in known.items() if (DATA / file).exists()} | dict.fromkeys(written, versions)
    VERSIONS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", "utf-8")


def read_exported(file: Path, places: dict[str, str]) -> bytes:
    """Read what a script exported, evened out unless it is packed. Raises ValueError: it is too large."""
    data = file.read_bytes()
    data = data if file.suffix == ".eval" else even_out(data.decode(), places).encode()
    if len(data) > MAX_BYTES:
        raise ValueError(f"{file.name} has {len(data)} bytes; at most {MAX_BYTES}")
    return data


def install_python(script: Path, home: Path) -> tuple[list[str], str]:
    """Install what the head of a script lists; return the command that runs one, and the packages."""
    uv, python = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv", home / "bin" / "python"
    packages = re.findall(r'^#\s+"(.+)",$', script.read_text("utf-8"), re.MULTILINE)
    if not python.exists():
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(home)], check=True)
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", str(python), *packages], check=True, cwd=ROOT, timeout=TIMEOUT_S
    )
    return [str(python)], ", ".join(packages)


def install_npm(script: Path, home: Path) -> tuple[list[str], str]:
    """Install what the first line of a script lists; a script is run from beside its packages."""
    packages = script.read_text("utf-8").partition("\n")[0].removeprefix("// npm: ").split()
    home.mkdir(parents=True, exist_ok=True)
    quiet = ["--no-audit", "--no-fund", "--no-save", "--silent"]
    subprocess.run(["npm", "install", *quiet, "--prefix", str(home), *packages], check=True, timeout=TIMEOUT_S)
    return ["node", f"--import={HERE / 'npm_packages.mjs'}"], ", ".join(packages)


UUID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
HEX = re.compile(r"(?<![\w.])(0x)?(?=\d*[a-f])(?:[0-9a-f]{32}|[0-9a-f]{16})(?!\w)")
BASE64 = re.compile(r'(?<=")[A-Za-z0-9+/]{11}(?:[A-Za-z0-9+/]{11}=)?=(?=")')
TIME = re.compile(r"\b20\d\d-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?:[.,]\d{3,9})?")
SHORT_UUID = re.compile(r'(?<=")[2-9A-HJ-NP-Za-km-z]{22}(?=")')
DURATION = re.compile(
    r'("\w*(?:duration|time|latency|working_start)\w*": )\d{1,5}\.\d+(?:e-\d+)?|("\w*(?:Ms|_ms|\.pid)": )\d+'
)
ORDER = re.compile(r"\b20\d{6}T\d{12}Z")
EPOCH = re.compile(r"(?<![\w.\"-])1[789]\d{8}(\d{3}|\d{6}|\d{9})?(\.\d+)?(?![\w.])")


def even_out(text: str, places: dict[str, str]) -> str:
    """Replace what differs from run to run: places of this machine, ids by their order, times by their rank."""
    for place, name in places.items():
        text = text.replace(place, name)
    text = text.replace(str(ROOT), "/callgrade")
    text = _number(text, UUID, lambda number, _: f"00000000-0000-4000-8000-{number:012d}")
    text = _number(text, HEX, _build_hex)
    text = _number(text, SHORT_UUID, lambda number, _: f"{number:022d}")
    text = _number(
        text, BASE64, lambda number, found: f"{number:0{len(found[0].rstrip('='))}d}{'=' * found[0].count('=')}"
    )
    text = ORDER.sub("20260528T202640000000Z", text)
    text = _rank(text, TIME, lambda rank, found: f"2026-05-28{found[1]}20:26:{rank:02d}")
    return DURATION.sub(
        lambda found: f"{found[1]}0.5" if found[1] else f"{found[2]}5", _rank(text, EPOCH, _build_epoch)
    )


def _build_hex(number: int, found: re.Match[str]) -> str:
    prefix = found[1] or ""
    return f"{prefix}{number:0{len(found[0]) - len(prefix)}x}"


def _build_epoch(rank: int, found: re.Match[str]) -> str:
    return f"{1_780_000_000 + rank}{'0' * len(found[1] or '')}{'.5' if found[2] else ''}"


def _number(text: str, pattern: re.Pattern[str], build: Callable[[int, re.Match[str]], str]) -> str:
    seen: dict[str, int] = {}
    return pattern.sub(lambda found: build(seen.setdefault(found[0], len(seen) + 1), found), text)


def _rank(text: str, pattern: re.Pattern[str], build: Callable[[int, re.Match[str]], str]) -> str:
    ranks = {one: rank for rank, one in enumerate(sorted({found[0] for found in pattern.finditer(text)}))}
    return pattern.sub(lambda found: build(ranks[found[0]], found), text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
