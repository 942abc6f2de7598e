"""A sandbox in some sixty lines: a shop whose orders can be looked up and refunded. Run it: python sandbox_server.py 8900

The scorer posts `{"initial": state, "calls": [{"id", "name", "arguments"}]}` and gets `{"results": [{"id", "content",
"is_error"}], "final": state}`. Every request starts from the state it brings, so nothing is kept between requests.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

State = dict[str, Any]


def find_order(state: State, order_id: str) -> Any:
    return state["orders"][order_id]


def refund_order(state: State, order_id: str, cents: int) -> Any:
    order = state["orders"][order_id]
    if cents > order["cents"]:
        raise ValueError(f"order {order_id} cost {order['cents']} cents")
    order["cents"] -= cents
    return {"refunded": cents}


TOOLS: dict[str, Callable[..., Any]] = {"find_order": find_order, "refund_order": refund_order}


def run(request: State) -> State:
    """Every call in order. A tool that fails is a result like any other; the state keeps what was done before."""
    state = copy.deepcopy(request["initial"] or {"orders": {}})
    results: list[State] = []
    for call in request["calls"]:
        try:
            content, is_error = TOOLS[call["name"]](state, **call["arguments"]), False
        except Exception as error:  # noqa: BLE001 (no call may stop the sandbox)
            content, is_error = f"{type(error).__name__}: {error}", True
        results.append({"id": call["id"], "content": content, "is_error": is_error})
    return {"results": results, "final": state}


class Sandbox(BaseHTTPRequestHandler):
    """Answers POST with what the calls came to."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = json.dumps(run(request)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Sandbox).serve_forever()
