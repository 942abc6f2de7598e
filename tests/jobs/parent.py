"""A process with a worker beside it, as `callgrade serve` is one."""

from __future__ import annotations

import threading
import time

from service.cli.serving.supervise import worker_beside

if __name__ == "__main__":
    with worker_beside(log_level="INFO", grace=5.0, wanted=True, stopping=threading.Event()):
        time.sleep(600)
