"""The temporary disk, where uploads wait: each tenant holds no more of it than it leaves for the others."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock

from starlette.exceptions import HTTPException

from service.api.fairness.shares import Shares
from service.errors import DiskFullError


class UploadDisk:
    """The bytes that uploads of one process hold on the temporary disk. Safe to share between threads."""

    def __init__(self, capacity: int) -> None:
        """`capacity`: bytes of all uploads together; less, while less is free on the disk."""
        self._capacity = capacity
        self._shares = Shares(capacity)
        self._folder = tempfile.gettempdir()
        self._lock = Lock()

    @contextmanager
    def hold(self, name: str) -> Generator[Callable[[int], None]]:
        """Open an upload of a tenant; the function that it yields counts bytes before they are written.

        It raises HTTPException 413 for an upload above any tenant's share, 429 where the tenant's uploads together are; and
        DiskFullError where the disk has too little room.
        """
        held, is_open = 0, True

        def take(amount: int) -> None:
            nonlocal held
            with self._lock:
                if not is_open:  # the client left while a thread was writing
                    raise HTTPException(503, "the upload has ended")
                self._take(name, amount, held)
                held += amount

        try:
            yield take
        finally:
            with self._lock:
                is_open = False
                if held:
                    self._shares.give(name, held)

    def _take(self, name: str, amount: int, held: int) -> None:
        share = self._capacity // 2
        if held + amount > share:
            detail = (
                f"the upload passes {share} bytes of the temporary disk, a tenant's share (CALLGRADE_MAX_UPLOADS_BYTES)"
            )
            raise HTTPException(413, detail)
        self._shares.capacity = min(self._capacity, self._shares.total + shutil.disk_usage(self._folder).free)
        if 2 * amount <= self._shares.count_room(name):  # afterwards it still leaves as much as it holds
            self._shares.take(name, amount)
            return
        if self._shares.capacity < self._capacity:
            raise DiskFullError("the temporary disk has too little room left: this upload would take that of others")
        total = self._shares.count_held(name)
        detail = f"your uploads hold {total} bytes of the temporary disk, and more would leave too little for others"
        raise HTTPException(429, detail, {"retry-after": "1"})
