"""The calls of ``sky.sandbox`` that Slipway uses, whichever of its early shapes is installed.

``create``, ``ls`` and the sandbox's ``exec``, ``write_bytes``, ``read_bytes`` and ``terminate`` each have an asynchronous sibling on
``.aio``; without one the call runs in a thread. ``exec`` answers a handle (``wait``, ``stdout.read``, ``stderr.read``) or, in older
releases, a mapping.
"""

import asyncio
import concurrent.futures
import importlib
import inspect

from slipway_skypilot.failures import Gone, Unsupported

_threads = concurrent.futures.ThreadPoolExecutor(max_workers=256)


async def call(function, *args, **kwargs):
    if function is None:
        raise Unsupported("the installed sandbox SDK has no such call")
    sibling = getattr(function, "aio", None)
    if sibling is not None:
        answer = sibling(*args, **kwargs)
    elif inspect.iscoroutinefunction(function):
        answer = function(*args, **kwargs)
    else:
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(_threads, lambda: function(*args, **kwargs))
    return await answer if inspect.isawaitable(answer) else answer


def field(thing, *names):
    record = thing if isinstance(thing, dict) else getattr(thing, "_record", None)
    for name in names:
        if not isinstance(thing, dict) and getattr(thing, name, None) is not None:
            return getattr(thing, name)
        if isinstance(record, dict) and record.get(name) is not None:
            return record[name]
    return None


def as_bytes(text):
    if text is None:
        return b""
    return bytes(text) if isinstance(text, (bytes, bytearray)) else str(text).encode("utf-8", "surrogateescape")


class Sandboxes:
    def __init__(self, sdk):
        self._sdk = sdk
        self._known = {}
        version = getattr(sdk, "__version__", None)
        self.version = None if version is None else str(version)

    @classmethod
    def open(cls):
        try:
            return cls(importlib.import_module("sky.sandbox"))
        except ImportError as error:
            try:
                return cls(importlib.import_module("sky_sandbox"))
            except ImportError:
                raise error from None

    async def create(self, params):
        made = await call(getattr(self._sdk, "create", None), **params)
        self._known[params["name"]] = made
        return described(made)

    async def list(self):
        return [described(found) for found in await self._listed()]

    async def execute(self, params):
        sandbox = await self._find(params["name"])
        options = {
            name: params[name]
            for name in ("workdir", "env", "timeout_seconds")
            if params.get(name) is not None
        }
        ended = await call(getattr(sandbox, "exec", None), *params["argv"], **options)
        if isinstance(ended, dict):
            return int(ended["exit_code"]), as_bytes(ended.get("stdout")), as_bytes(ended.get("stderr"))
        code = await call(ended.wait)
        out, err = await asyncio.gather(call(ended.stdout.read), call(ended.stderr.read))
        return int(code), as_bytes(out), as_bytes(err)

    async def write(self, name, content, to):
        sandbox = await self._find(name)
        await call(getattr(sandbox, "write_bytes", None), content, to)

    async def read(self, name, source):
        sandbox = await self._find(name)
        return as_bytes(await call(getattr(sandbox, "read_bytes", None), source))

    async def terminate(self, name):
        """Whether there was anything to end. Returns when it has ended."""
        try:
            sandbox = await self._find(name)
        except Gone:
            return False
        self._known.pop(name, None)
        await call(getattr(sandbox, "terminate", None), wait=True)
        return True

    async def _find(self, name):
        if name not in self._known:
            for found in await self._listed():
                if field(found, "name") == name:
                    self._known[name] = found
                    break
            else:
                raise Gone(f"no sandbox is called {name}")
        return self._known[name]

    async def _listed(self):
        return list(await call(getattr(self._sdk, "ls", None)))


def described(sandbox):
    return {
        "name": field(sandbox, "name"),
        "status": str(field(sandbox, "status") or "UNKNOWN"),
        "error": field(sandbox, "error_message"),
    }
