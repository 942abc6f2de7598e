"""A process with a worker beside it, as `callgrade serve` is one."""

from __future__ import annotations

import threading
import time

from service.cli.working import supervised_workers

if __name__ == "__main__":
    with supervised_workers(1, grace=5.0, stopping=threading.Event()):
        time.sleep(600)
