"""Calls `slipway_miles` as a trainer does. Reads one JSON object per line, {"variables", "options", "run" | "abort", "cancelled": at the next line}, in turn, and prints
what came back and what was logged.

The folder of the package is the first argument.
"""

import argparse
import asyncio
import json
import logging
import os
import sys

sys.path.insert(0, sys.argv[1])

import slipway_miles

names = [
    *("AGENT_SERVER_URL", "SWE_AGENT_URL", "HARBOR_ADMIN_SECRET", "AGENT_TRIAL_TIMEOUT"),
    *("AGENT_MODEL_NAME", "SWE_AGENT_MODEL_NAME", "MILES_ROUTER_EXTERNAL_HOST"),
]
logged = []


class Lines(logging.Handler):
    def emit(self, record):
        logged.append([record.levelname, record.getMessage()])


logger = logging.getLogger("slipway_miles")
logger.addHandler(Lines())
logger.setLevel(logging.WARNING)


async def call(order):
    plugin = slipway_miles.Plugin(**order["options"]) if order.get("options") else slipway_miles
    if "abort" in order:
        return await plugin.abort(argparse.Namespace(**order["abort"]))
    running = asyncio.ensure_future(plugin.run(**order["run"]))
    if order.get("cancelled"):
        await asyncio.to_thread(sys.stdin.readline)
        running.cancel()
    return await running


async def main():
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(order["variables"])
        logged.clear()
        try:
            said = {"result": await call(order), "logged": logged}
        except BaseException as error:
            said = {"raised": repr(error), "logged": logged}
        print(json.dumps(said), flush=True)


asyncio.run(main())
