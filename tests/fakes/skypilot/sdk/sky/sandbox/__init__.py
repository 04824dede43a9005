"""The calls of SkyPilot's sandbox SDK, with the names, parameters and answers that its documentation gives, against `sky-platform.ts`.

What goes over the wire here is the fake's own: the service's is not published. Strings come as strings, with what is no UTF-8 replaced,
as the real handle gives them.
"""

import asyncio
import concurrent.futures
import http.client
import json
import os
import urllib.parse

__version__ = "0.0.0-fake"

_threads = concurrent.futures.ThreadPoolExecutor(max_workers=256)


class ApiError(Exception):
    def __init__(self, status, message, retry_after=None):
        super().__init__(f"{status}: {message}")
        self.status_code = status
        self.retry_after = retry_after


def _request(method, path, body=None, raw=False):
    endpoint = urllib.parse.urlsplit(os.environ["SKYPILOT_API_SERVER_ENDPOINT"])
    connection = http.client.HTTPConnection(endpoint.hostname, endpoint.port, timeout=600)
    try:
        headers = {"Authorization": f"Bearer {endpoint.password or ''}"}
        content = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, content, headers)
        answer = connection.getresponse()
        said = answer.read()
    finally:
        connection.close()
    if answer.status >= 400:
        after = answer.headers.get("Retry-After")
        raise ApiError(answer.status, said.decode("utf-8", "replace"), None if after is None else float(after))
    return said if raw else json.loads(said or b"null")


class _Call:
    """A call with an asynchronous sibling on ``.aio``."""

    def __init__(self, function):
        self._function = function

    def __get__(self, instance, _owner):
        return self if instance is None else _Call(self._function.__get__(instance))

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    async def aio(self, *args, **kwargs):
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_threads, lambda: self._function(*args, **kwargs))


class _Stream:
    def __init__(self, path):
        self._path = path

    @_Call
    def read(self):
        return _request("GET", self._path, raw=True).decode("utf-8", "replace")


class ExecHandle:
    def __init__(self, path):
        self._path = path
        self.stdout = _Stream(f"{path}/stdout")
        self.stderr = _Stream(f"{path}/stderr")

    @_Call
    def wait(self, timeout=None):
        while True:
            code = _request("GET", self._path)["exit_code"]
            if code is not None:
                return code


class Sandbox:
    def __init__(self, record):
        self._record = record
        self.name = record["name"]
        self.status = record["status"]
        self.error_message = record["error_message"]
        self._path = "/sandboxes/" + urllib.parse.quote(self.name)

    @_Call
    def exec(self, *argv, workdir=None, env=None, timeout_seconds=60):
        if not argv:
            raise ValueError("exec needs a command")
        asked = {"argv": argv, "workdir": workdir, "env": env, "timeout_seconds": timeout_seconds}
        made = _request("POST", f"{self._path}/execs", asked)
        return ExecHandle(f"{self._path}/execs/{made['id']}")

    @_Call
    def write_bytes(self, data, path):
        if not isinstance(data, bytes):
            raise TypeError("write_bytes takes bytes")
        _request("PUT", f"{self._path}/file?" + urllib.parse.urlencode({"path": path}), data)

    @_Call
    def read_bytes(self, path):
        return _request("GET", f"{self._path}/file?" + urllib.parse.urlencode({"path": path}), raw=True)

    @_Call
    def terminate(self, wait=True):
        _request("DELETE", f"{self._path}?" + urllib.parse.urlencode({"wait": int(wait)}))


@_Call
def create(
    name=None,
    image=None,
    pool=None,
    cpus=None,
    memory_gb=None,
    registry=None,
    context_name=None,
    namespace=None,
    env=None,
    secrets=None,
    block_network=False,
    timeout=None,
):
    if image and pool:
        raise ValueError("a pool fixes the image of its sandboxes")
    return Sandbox(_request("POST", "/sandboxes", dict(locals())))


@_Call
def ls():
    return [Sandbox(record) for record in _request("GET", "/sandboxes")]
