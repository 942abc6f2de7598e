"""A folder for PATH whose `callgrade` is forked from a process that has loaded it: what a shell runs begins at once.

The program there is a few lines that hand their words, folder, environment and streams to this process, pass signals on,
and end as the forked process does. `python -c` and `python -m` are forked likewise, for programs that are not about what gets
loaded; they are the Python of what is forked here, so that what starts a Python of its own has that one forked too.
What starts servers or workers in several processes is not run so: these load all anew, and beside it took six times as long.
"""

from __future__ import annotations

import _socket
import atexit
import os
import socket
import sys
import tempfile
from array import array
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import dropwhile
from multiprocessing.connection import wait
from multiprocessing.reduction import DupFd
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from tests.forked import FORKING, run_module

STREAMS = (0, 1, 2)
UNHEEDED = frozenset({"-P", "-u"})
"""Options of Python that change nothing for what is forked."""
TESTER = "tester"
"""A Python that tests: what it starts as a Python of its own loads all by itself."""
WIDTH = 12
"""How many characters a number takes that goes back."""
PROGRAM = """#!{python} -IS
import _socket, os, signal, sys

door = _socket.socket(_socket.AF_UNIX)
door.connect({door!r})
streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
door.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
parts = [os.getcwd().encode(), str(len(sys.argv)).encode(), *map(os.fsencode, sys.argv)]
parts += [name + b"=" + value for name, value in os.environb.items()]
door.sendall(b"\\0".join(parts) + b"\\0\\0")
pid = int(door.recv({width}))
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(door.recv({width}))
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""
"""Without site and without Python's own socket: 15 ms."""


class Call(NamedTuple):
    """What a shell runs: the words, the first of them the program, where, and with what environment."""

    folder: str
    words: list[str]
    environ: Mapping[str, str]

    @classmethod
    def read(cls, sent: bytes) -> Call:
        """What the program has sent."""
        folder, count, *parts = map(os.fsdecode, sent.removesuffix(b"\0\0").split(b"\0"))
        words = parts[: int(count)]
        return cls(folder, words, dict(pair.split("=", 1) for pair in parts[int(count) :]))

    def run(self) -> None:
        """Runs it in this process."""
        os.environ.clear()
        os.environ.update(self.environ)
        os.chdir(self.folder)
        program, *args = self.words
        sys.argv = self.words
        if Path(program).name != TESTER:
            sys.executable = str(Path(program).with_name("python"))
        if Path(program).name == "callgrade":
            from service.cli import main

            sys.exit(main(args))
        option, code, *rest = dropwhile(UNHEEDED.__contains__, args)
        if option == "-m":
            run_module(code, rest)
            return
        sys.argv = ["-c", *rest]
        try:
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 (a test's own)
        finally:
            if Path(program).name == TESTER:
                atexit._run_exitfuncs()  # what was forked ends without them


class Streams:
    """File descriptors that a forked process gets as its standard streams."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    def __reduce__(self) -> tuple[Any, ...]:
        return _streams, tuple(map(DupFd, self.numbers))

    def stand(self) -> None:
        """Puts them in the place of this process's own."""
        for place, number in zip(STREAMS, self.numbers, strict=True):
            os.dup2(number, place)
            os.close(number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


def _streams(*duplicates: Any) -> Streams:
    return Streams([one.detach() for one in duplicates])


def _run(call: Call, streams: Streams) -> None:
    streams.stand()
    call.run()


@cache
def find_launchers() -> Path:
    """The folder, in which `callgrade` and `python` are forked as long as this process lives."""
    kept = tempfile.TemporaryDirectory(prefix="callgrade-launchers-")
    door = socket.socket(socket.AF_UNIX)
    atexit.register(kept.cleanup)
    atexit.register(door.close)
    folder = Path(kept.name)
    door.bind(str(folder / "door"))
    door.listen()
    for name in ("callgrade", "python", TESTER):
        program = folder / name
        program.write_text(PROGRAM.format(python=sys.executable, door=str(folder / "door"), width=WIDTH), "utf-8")
        program.chmod(0o700)
    Thread(target=_open, args=(door,), daemon=True).start()
    return folder


def _open(door: socket.socket) -> None:
    while True:
        try:
            visitor, _ = door.accept()
        except OSError:
            return
        Thread(target=_host, args=(visitor,), daemon=True).start()


def _host(visitor: socket.socket) -> None:
    with visitor:
        _, given, _, _ = visitor.recvmsg(1, _socket.CMSG_SPACE(len(STREAMS) * 4))
        streams = list(array("i", given[0][2]))
        sent = b""
        while not sent.endswith(b"\0\0"):
            if not (more := visitor.recv(1 << 16)):
                return
            sent += more
        process = FORKING.Process(target=_run, args=(Call.read(sent), Streams(streams)))
        process.start()
        for stream in streams:
            os.close(stream)
        with suppress(OSError):  # whoever called was killed
            visitor.sendall(f"{process.pid:{WIDTH}}".encode())
        if process.sentinel not in wait([process.sentinel, visitor]):
            process.kill()
        process.join()
        with suppress(OSError):
            visitor.sendall(f"{process.exitcode:{WIDTH}}".encode())
