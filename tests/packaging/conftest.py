"""What the packaging tests look at: the files that git would keep, and the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def kept() -> list[str]:
    """Paths, from the top, of every file that is in git or would be with `git add --all`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip(f"not a git checkout: {listing.stderr.strip()}")
    return sorted({name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()})


@pytest.fixture(scope="session")
def uv() -> str:
    """The uv of this environment, else the one on PATH."""
    own = shutil.which("uv", path=str(Path(sys.prefix, "bin"))) or shutil.which("uv")
    if own is None:
        pytest.skip("no uv here; `make test` puts one into the environment")
    return own


@pytest.fixture(scope="session")
def wheel(uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built once. The build backend comes from uv's cache if it is there, else from the index."""
    out = tmp_path_factory.mktemp("wheel")
    command = [uv, "build", "--quiet", "--wheel", "--out-dir", str(out), str(ROOT)]
    if subprocess.run([*command, "--offline"], capture_output=True, check=False).returncode:
        subprocess.run(command, check=True)
    (built,) = out.glob("*.whl")
    return built
