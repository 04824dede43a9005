"""A role for the tests of runners: it does what an order says."""

import asyncio
import ctypes
import os
import signal
import subprocess

from slipway_runner.connection import RefusedError
from slipway_runner.process import serve


class AskingRole:
    async def load(self, settings):
        if settings.get("sleep"):
            await asyncio.sleep(3600)
        return {"settings": settings}

    async def carry_out(self, order, connection):
        if order["act"] == "ask":
            answers = [connection.request("add", {"to": number}) for number in order["numbers"]]
            return await asyncio.gather(*answers)
        if order["act"] == "refused":
            try:
                return await connection.request("refuse", None)
            except RefusedError as error:
                return [error.code, str(error)]
        if order["act"] == "withdraw":
            try:
                await asyncio.wait_for(connection.request("wait", None), 0.05)
            except (TimeoutError, asyncio.TimeoutError):
                return "withdrawn"
        if order["act"] == "garbage":
            os.write(connection._output, b"no JSON\n")
            await asyncio.sleep(3600)
        if order["act"] == "fills":
            os.set_blocking(2, False)
            try:
                while True:
                    os.write(2, b"x" * 4096)
            except BlockingIOError:
                return "filled"
        if order["act"] == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("deaf", flush=True)
            while True:
                pass
        if order["act"] == "holds":
            child = subprocess.Popen(["sleep", "3600"])
            print(os.getpid(), child.pid, flush=True)
            ctypes.PyDLL(None).sleep(3600)  # without ever letting another thread of Python work
        return None


serve(AskingRole)
