"""The service with an engine that is busy for ever, which nothing can end: `python -m tests.api.busy`."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress

from service.api.app import create_app
from service.cli.commands.serve import announce, bind_listener, serve_on
from service.cli.options import read_settings
from service.core.report import Report
from service.engine import Engine
from service.logs.lines import configure
from service.reading.request import ScoreRequest
from service.registry import Registry


class Busy(Engine):
    """Comes to no end with a request that is tagged `busy`."""

    def answer(self, request: ScoreRequest) -> Report:
        if "busy" in request.tags:
            sys.stderr.write("busy\n")
        while "busy" in request.tags:
            time.sleep(0.01)
        return super().answer(request)


def main() -> None:
    """Serves until told to stop."""
    settings = read_settings()
    configure(settings.log_level)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with bind_listener(settings.host, 0) as listener, suppress(KeyboardInterrupt):
        announce(listener, "", workers=1, browser=False)
        serve_on(create_app(settings, engine=Busy(Registry())), settings, listener, workers=1, token="")


if __name__ == "__main__":
    main()
