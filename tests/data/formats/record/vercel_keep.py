"""Runs vercel.mjs against the server and makes fixtures of what it printed: `python vercel_keep.py FOLDER_WITH_NODE_MODULES`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import script
from server import serve

folder = Path(sys.argv[1])
given = {"questions": script.QUESTIONS, "results": script.RESULTS, "png": script.PNG, "system": script.SYSTEM}
shutil.copy(Path(__file__).with_name("vercel.mjs"), folder)
with serve() as url, tempfile.TemporaryDirectory() as scratch:
    out = Path(scratch, "out.json")
    subprocess.run(["node", "vercel.mjs", url, str(out)], cwd=folder, input=json.dumps(given), text=True, check=True)
    made = json.loads(out.read_text("utf-8"))
number = json.loads((folder / "node_modules/ai/package.json").read_text("utf-8"))["version"]
script.version = lambda package: number  # the package is not one of Python's
run = script.Run(tools=None)
script.keep(
    "vercel",
    "model_messages",
    {"messages": made["messages"]},
    package="ai (npm)",
    run=run,
    image="/messages/4/content/1",
)
masked = script.Run(
    tools=None, results=[script.RESULTS[0], "An error occurred.", script.RESULTS[2]]
)  # the SDK hides the cause
script.keep(
    "vercel", "ui_messages", {"messages": made["ui"]}, package="ai (npm)", run=masked, image="/messages/2/parts/1"
)
