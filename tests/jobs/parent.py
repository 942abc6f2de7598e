"""A process with a worker beside it, as `callgrade serve` is one."""

from __future__ import annotations

import threading
import time

from service.cli.serving.supervise import supervised_worker

if __name__ == "__main__":
    with supervised_worker(log_level="INFO", grace=5.0, enabled=True, stopping=threading.Event()):
        time.sleep(600)
