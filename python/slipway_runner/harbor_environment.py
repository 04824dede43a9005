"""The environment as an agent of Harbor's sees it: every command and every copy is asked of the server, which owns the sandbox."""

import contextlib
import contextvars
import os
import shlex
from pathlib import Path
from types import SimpleNamespace

from .connection import RefusedError

PATH_PROBE_SEC = 10


class OperationError(RuntimeError):
    """What was asked for failed. Harbor's environments raise RuntimeError too."""

    def __init__(self, refusal):
        super().__init__(f"{refusal.code}: {refusal}")
        self.refusal = refusal


class RemoteEnvironment:
    """What goes to the server. Mixed into Harbor's `BaseEnvironment` where the agent stands on Harbor, into `PlainEnvironment` otherwise."""

    _connection = None
    _recorded = None

    def connect(self, connection, read_context):
        """Before each order. `read_context` tells what the agent has found out so far, None = nothing."""
        self._connection = connection
        self._read_context = read_context
        self._recorded = None

    @staticmethod
    def type():
        return "slipway"

    async def start(self, force_build=False):
        raise RuntimeError("the environment belongs to the trial, which has started it")

    async def stop(self, delete=True):
        raise RuntimeError("the environment belongs to the trial, which will stop it")

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        scoped = {}
        for overlay in self._exec_env_overlays.get():
            scoped.update(overlay)
        answer = await self._ask(
            "exec",
            {
                "command": command,
                "cwd": None if cwd is None else str(cwd),
                "env": as_variables(env),
                "scoped_env": as_variables(scoped),
                "timeout_sec": timeout_sec,
                "user": self.default_user if user is None else user,
            },
        )
        await self._tell_output(answer)
        return self._result(**answer)

    async def upload_file(self, source_path, target_path):
        await self._copy("upload_file", on_host(source_path), str(target_path))

    async def upload_dir(self, source_dir, target_dir):
        await self._copy("upload_dir", on_host(source_dir), str(target_dir))

    async def download_file(self, source_path, target_path):
        target = on_host(target_path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        await self._copy("download_file", str(source_path), target)

    async def download_dir(self, source_dir, target_dir):
        await self._copy("download_dir", str(source_dir), on_host(target_dir))

    async def _copy(self, method, source, target):
        await self._ask(method, {"source": source, "target": target})

    async def _ask(self, method, params):
        try:
            await self._record()
            return await self._connection.request(method, params)
        except RefusedError as refusal:
            raise OperationError(refusal) from None

    async def _record(self):
        """An agent that is killed after this has lost nothing that it had found out before."""
        context = self._read_context()
        if context is None or context == self._recorded:
            return
        await self._connection.request("record", context)
        self._recorded = context

    async def _tell_output(self, answer):
        tell = self._output_callback()
        if tell is None:
            return
        for stream in ("stdout", "stderr"):
            if answer[stream]:
                await tell(answer[stream], stream)


class PlainEnvironment(RemoteEnvironment):
    """For classes that have an agent's methods and know nothing of Harbor."""

    _result = SimpleNamespace

    def __init__(self):
        self.default_user = None
        self._exec_env_overlays = contextvars.ContextVar("exec_env_overlays", default=())

    def _output_callback(self):
        return None

    @contextlib.contextmanager
    def with_default_user(self, user):
        previous, self.default_user = self.default_user, user
        try:
            yield
        finally:
            self.default_user = previous

    @contextlib.contextmanager
    def scoped_exec_env(self, env):
        token = self._exec_env_overlays.set((*self._exec_env_overlays.get(), dict(env)))
        try:
            yield
        finally:
            self._exec_env_overlays.reset(token)

    async def is_dir(self, path, user=None):
        return await self._is("-d", path, user)

    async def is_file(self, path, user=None):
        return await self._is("-f", path, user)

    async def _is(self, flag, path, user):
        command = f"test {flag} {shlex.quote(str(path))}"
        result = await self.exec(command, timeout_sec=PATH_PROBE_SEC, user=user)
        return result.return_code == 0


def environment_for(is_harbor, settings):
    if not is_harbor:
        return PlainEnvironment()
    from harbor.environments.base import BaseEnvironment, ExecResult
    from harbor.models.task.config import EnvironmentConfig
    from harbor.models.trial.paths import TrialPaths

    class HarborEnvironment(RemoteEnvironment, BaseEnvironment):
        _result = ExecResult

        def _validate_definition(self):
            """The server has done that."""

    trial_dir = Path(settings["trial_dir"])
    return HarborEnvironment(
        environment_dir=trial_dir,
        environment_name=trial_dir.name,
        session_id=settings["session_id"].removesuffix("__agent") + "__env",
        trial_paths=TrialPaths(trial_dir),
        task_env_config=EnvironmentConfig(),
    )


def as_variables(env):
    return {str(name): str(value) for name, value in (env or {}).items()}


def on_host(path):
    return os.path.abspath(os.path.expanduser(str(path)))
