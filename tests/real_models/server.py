"""Serve one model file by OpenAI's protocol, until it is killed: python server.py FILE PORT, in the environment of the models."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def main(file: str, port: int) -> None:
    """Serve the model; a line on standard output says that it is ready."""
    import xllamacpp  # pyright: ignore[reportMissingImports]

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = file, {Path(file).stem}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel = 16_384, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(
        os.environ.get("REAL_THREADS") or os.cpu_count() or 2
    )
    params.use_jinja = True
    server = xllamacpp.Server(params)
    print(f"ready at {server.listening_address}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
