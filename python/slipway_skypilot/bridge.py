"""Calls SkyPilot's sandbox SDK on behalf of a Slipway process.

JSON lines on standard input and output. The first line out is ``{"ready": {...}}`` or ``{"broken": {...}}``. Then each line in is a
call ``{"id", "method", "params"}`` or ``{"cancel": id}``, and each line out the end of one call: ``{"id", "value"}`` or
``{"id", "error"}``. Calls run side by side. The end of the input ends the program. The standard library and the SDK are all it needs.
"""

import asyncio
import base64
import json
import os
import sys
import threading

# Started as a file: the folder above stands in for its own, whose names would hide others'.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from slipway_skypilot import failures, sdk_calls  # noqa: E402


class Bridge:
    """The calls that run, and the sandboxes whose handles are known."""

    def __init__(self, sandboxes, out):
        self._sandboxes = sandboxes
        self._out = out
        self._running = {}

    def hear(self, line):
        message = json.loads(line)
        if "cancel" in message:
            task = self._running.get(message["cancel"])
            if task is not None:
                task.cancel()
            return
        call = message["id"]
        task = asyncio.ensure_future(self._carry_out(call, message["method"], message["params"]))
        self._running[call] = task
        task.add_done_callback(lambda _: self._running.pop(call, None))

    def say(self, message):
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    async def _carry_out(self, call, method, params):
        try:
            value = await METHODS[method](self._sandboxes, params)
            self.say({"id": call, "value": value})
        except asyncio.CancelledError:
            self.say({"id": call, "error": {"kind": "cancelled", "message": "cancelled"}})
        except Exception as error:  # whatever a foreign SDK raises is an answer
            self.say({"id": call, "error": failures.describe(error)})


async def create(sandboxes, params):
    return await sandboxes.create(params)


async def listing(sandboxes, _params):
    return await sandboxes.list()


async def execute(sandboxes, params):
    code, out, err = await sandboxes.execute(params)
    return {"exit_code": code, "stdout": encoded(out), "stderr": encoded(err)}


async def write(sandboxes, params):
    with open(params["host_path"], "rb") as file:
        file.seek(params["offset"])
        content = file.read(params["size"])
    await sandboxes.write(params["name"], content, params["to"])
    return len(content)


async def read(sandboxes, params):
    content = await sandboxes.read(params["name"], params["from"])
    with open(params["host_path"], "wb") as file:
        file.write(content)
    return len(content)


async def terminate(sandboxes, params):
    return await sandboxes.terminate(params["name"])


METHODS = {
    "create": create,
    "list": listing,
    "execute": execute,
    "write": write,
    "read": read,
    "terminate": terminate,
}


def encoded(content):
    return base64.b64encode(content).decode("ascii")


def own_output():
    """Standard output for messages alone: what the SDK prints goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


async def serve(bridge):
    loop = asyncio.get_running_loop()
    over = loop.create_future()

    def listen():
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(bridge.hear, line)
        loop.call_soon_threadsafe(over.set_result, None)

    threading.Thread(target=listen, daemon=True).start()
    await over


def main():
    out = own_output()
    try:
        sandboxes = sdk_calls.Sandboxes.open()
    except Exception as error:  # importing it reads files of the user: it may raise anything
        missing = isinstance(error, ImportError)
        broken = {"missing": missing, "message": f"{type(error).__name__}: {error}"}
        out.write(json.dumps({"broken": broken}) + "\n")
        out.flush()
        return
    bridge = Bridge(sandboxes, out)
    bridge.say({"ready": {"python": sys.version.split()[0], "sdk": sandboxes.version}})
    asyncio.run(serve(bridge))
    os._exit(0)  # calls that still run in threads have nobody to answer


if __name__ == "__main__":
    main()
