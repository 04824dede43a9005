"""The lines between a runner and its server. The streams are taken from the process before any of the user's code is imported: what that code reads from
its standard input is empty, and what it prints goes to the standard error."""

import asyncio
import json
import os
import select
import threading

MAX_LINE_BYTES = 64 * 1024 * 1024


class RefusedError(Exception):
    """The server did not do what it was asked for. `code` is stable."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Connection:
    def __init__(self):
        self._input = os.fdopen(os.dup(0), "rb")
        self._output = os.dup(1)
        self._errors = os.dup(2)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self._writing = threading.Lock()
        self._loop = None
        self._waiting = {}
        self._asked = 0

    def read(self):
        """The next document; None at the end. Blocks."""
        line = self._input.readline(MAX_LINE_BYTES + 1)
        if not line.endswith(b"\n"):
            return None
        return json.loads(line)

    def send(self, document):
        """Any thread may. Raises ValueError when it is no JSON, or too long."""
        try:
            text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except (TypeError, RecursionError) as error:
            raise ValueError(str(error)) from error
        line = text.encode("utf-8", "replace") + b"\n"
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"a message of {len(line)} bytes is longer than the server reads")
        with self._writing:
            write_all(self._output, line)

    def mark(self, text):
        """Into what is printed, whatever the user's code did to its own streams."""
        write_all(self._errors, b"\0" + text.encode("ascii") + b"\0")

    def attach(self, loop):
        self._loop = loop

    async def request(self, method, params):
        """Asks the server for something. Raises RefusedError. When the waiting task is cancelled, the server is told."""
        self._asked += 1
        number = self._asked
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self.send({"kind": "request", "id": number, "method": method, "params": params})
            return await answer
        except asyncio.CancelledError:
            self.send({"kind": "withdraw", "id": number})
            raise
        finally:
            del self._waiting[number]

    def answered(self, message):
        """Called by the thread that reads."""
        self._loop.call_soon_threadsafe(self._settle, message)

    def _settle(self, message):
        answer = self._waiting.get(message["id"])
        if answer is None or answer.done():
            return
        if message["kind"] == "answer":
            answer.set_result(message["value"])
        else:
            error = message["error"]
            answer.set_exception(RefusedError(error["code"], error["message"]))


def write_all(descriptor, content):
    view = memoryview(content)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            # A program that the user's code started has changed the pipe for all who hold it.
            select.select([], [descriptor], [])
