"""The life of a runner: start, then orders one after the other until the standard input ends.

The user's code runs in the main thread, in one event loop for the life of the process. A thread of its own reads what the server says, so that a cancel is
noted, and the end of the server heard, while the code is busy.
"""

import asyncio
import os
import platform
import sys
import threading
import time

# Not in every Python; and before the folders of the user's code are looked into.
try:
    import resource
except ImportError:
    resource = None

from .connection import Connection
from .failures import failure_of, load_failure
from .guard import end_group, stand_guard
from .leftovers import CountingExecutor, Leftovers
from .loading import missing_package

PROTOCOL_VERSION = 1


class Order:
    def __init__(self, message):
        self.id = message["id"]
        self.content = message["order"]
        self.was_cancelled = False
        self.task = None


def serve(make_role):
    """Never returns while the server lives."""
    connection = Connection()
    start = connection.read()
    if start is None:
        return
    if start.get("version") != PROTOCOL_VERSION:
        connection.send({"kind": "broken", "message": "the server speaks another protocol"})
        return
    stand_guard()
    limit_memory(start["memoryMb"])
    asyncio.run(Runner(connection, start).run(make_role))


class Runner:
    def __init__(self, connection, start):
        self._connection = connection
        self._mark = start["mark"]
        self._settings = start["settings"]
        self._order = None
        self._arrived = None
        self._loop = None

    async def run(self, make_role):
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Queue()
        self._connection.attach(self._loop)
        executor = CountingExecutor()
        self._loop.set_default_executor(executor)
        threading.Thread(target=self._listen, name="slipway-lines", daemon=True).start()
        try:
            role = make_role()
            details = await role.load(self._settings)
        except Exception as error:
            missing = missing_package(error)
            self._connection.send({"kind": "broken", "message": load_failure(error), "missing": missing})
            await asyncio.Event().wait()  # the server ends the process when it has heard
        except SystemExit as error:
            leave(error)
        ready = {"kind": "ready", "python": platform.python_version(), "details": details}
        self._connection.send(ready)
        while True:
            order = await self._arrived.get()
            report = await self._carry_out(role, order, Leftovers(executor))
            flush()
            self._connection.mark(f"{self._mark}:{order.id}")
            try:
                self._connection.send({"kind": "ended", "id": order.id, "report": report})
            except ValueError as error:
                report["failure"] = failure_of(error)
                report["value"] = None
                self._connection.send({"kind": "ended", "id": order.id, "report": report})

    async def _carry_out(self, role, order, leftovers):
        since = time.monotonic()
        value, failure = None, None
        order.task = self._loop.create_task(carry_out(role, order.content, self._connection))
        if order.was_cancelled:
            order.task.cancel()
        await asyncio.wait([order.task])
        try:
            value = order.task.result()
        except (Exception, asyncio.CancelledError) as error:
            failure = failure_of(error)
            if isinstance(error, MemoryError):
                leftovers.spoil()
        elapsed_ms = (time.monotonic() - since) * 1000
        return {
            "elapsedMs": elapsed_ms,
            "wasCancelled": order.was_cancelled,
            "isIdle": leftovers.are_none(),
            "failure": failure,
            "value": value,
        }

    def _listen(self):
        """In a thread of its own."""
        try:
            while True:
                message = self._connection.read()
                if message is None:
                    break
                self._hear(message)
        finally:
            # The server is gone: nobody would ever end what is left here.
            end_group()

    def _hear(self, message):
        kind = message["kind"]
        if kind == "order":
            self._order = Order(message)
            self._loop.call_soon_threadsafe(self._arrived.put_nowait, self._order)
        elif kind == "cancel":
            order = self._order
            if order is not None and order.id == message["id"]:
                # Noted at once, although the loop may be busy until long after.
                order.was_cancelled = True
                self._loop.call_soon_threadsafe(cancel, order)
        elif kind in ("answer", "refusal"):
            self._connection.answered(message)


async def carry_out(role, order, connection):
    try:
        return await role.carry_out(order, connection)
    except SystemExit as error:
        leave(error)


def cancel(order):
    if order.task is not None:
        order.task.cancel()


def leave(error):
    """As the interpreter would, without waiting for threads and tasks."""
    code = error.code
    if isinstance(code, str):
        print(code, file=sys.stderr)
    flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the user's code closed it


def limit_memory(megabytes):
    if megabytes is None or resource is None:
        return
    size = megabytes * 1024 * 1024
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        size = min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (size, hard))
