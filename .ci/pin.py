"""Writes beside the tag of every image which image that is today, by its digest: what is built later is the same.

It asks the registry through `docker buildx imagetools inspect`. Digests that stand there already are replaced.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FILES = ("Dockerfile", "deploy/compose.yaml", ".github/workflows/ci.yml")
IMAGE = re.compile(
    r"(?P<before>^ARG PYTHON_IMAGE=|^\s*image: )(?P<name>(?!callgrade:)[\w./-]+:[\w.-]+)(?P<old>@sha256:[0-9a-f]{64})?",
    re.MULTILINE,
)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def digest(name: str) -> str:
    """The digest of an image's list of platforms; SystemExit where docker gives none."""
    command = ["docker", "buildx", "imagetools", "inspect", name, "--format", "{{.Manifest.Digest}}"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (names of our own files)
    found = told.stdout.strip()
    if told.returncode or not DIGEST.fullmatch(found):
        sys.exit(f"{name}: docker gave no digest: {told.stderr.strip() or found}")
    return found


def pinned(text: str, digests: dict[str, str]) -> str:
    """The text with the digest of each image behind its tag."""
    return IMAGE.sub(lambda found: f"{found['before']}{found['name']}@{digests[found['name']]}", text)


def main() -> None:
    """Pins the images of all files, or of none."""
    root = Path(__file__).parents[1]
    texts = {root / name: (root / name).read_text("utf-8") for name in FILES}
    names = {found["name"] for text in texts.values() for found in IMAGE.finditer(text)}
    digests = {name: digest(name) for name in sorted(names)}
    for file, text in texts.items():
        file.write_text(pinned(text, digests), "utf-8")


if __name__ == "__main__":
    main()
