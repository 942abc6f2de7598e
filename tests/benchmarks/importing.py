"""(d) What a fresh `import service` takes, and the sockets it opens."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import sys, time
opened = []
sys.addaudithook(lambda event, args: opened.append(event) if event.startswith("socket.") else None)
start = time.perf_counter()
import service
{first_use}
print(time.perf_counter() - start, len(opened))
"""
BARE = "import time; start = time.perf_counter(); import pydantic; pydantic.BaseModel; print(time.perf_counter() - start, 0)"


def measure() -> None:
    """Prints the fastest of five fresh imports, beside that of pydantic alone."""
    seconds, sockets = _fastest(PROBE.format(first_use=""))
    first, more = _fastest(PROBE.format(first_use="service.score"))
    reference, _ = _fastest(BARE)
    print("(d) fresh import")
    print(f"    import pydantic                                                   {reference:8.3f} s")
    print(
        f"    import service                                                    {seconds:8.3f} s, {sockets} sockets opened"
    )
    print(
        f"    import service, and its first name                                {first:8.3f} s, {more} sockets opened"
    )
    print(f"    ratio of the latter to pydantic                                   {first / reference:8.2f}")


def _fastest(code: str) -> tuple[float, int]:
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    found = [run.stdout.split() for run in runs]
    return min((float(seconds), int(sockets)) for seconds, sockets in found)
