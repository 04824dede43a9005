"""The role `harbor-agent`: a class of Harbor's (`BaseAgent`, `BaseInstalledAgent`, or anything with the same methods) works in an environment of Slipway's.

One object for one trial: it is made when the runner starts, set up once, and run once per step.
"""

import asyncio
import importlib
import inspect
import json
import logging
import traceback
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from uuid import uuid4

from .connection import RefusedError
from .failures import cut, words_of
from .harbor_environment import environment_for
from .samples import NOTHING, fit

MAX_TRACEBACK_LENGTH = 8_000
EXIT_ERROR = "NonZeroAgentExitCodeError"
CONTEXT_FIELDS = (
    "n_input_tokens",
    "n_cache_tokens",
    "n_output_tokens",
    "cost_usd",
    "rollout_details",
    "metadata",
)


class HarborAgentRole:
    def __init__(self):
        self._agent = None
        self._settings = None
        self._context = None
        self._environment = None

    async def load(self, settings):
        self._settings = settings
        # As Harbor does: every line that the agent logs goes to the log of the trial.
        logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
        logger = logging.getLogger("agent")
        logger.setLevel(logging.DEBUG)
        agent_class = load_class(settings["import_path"])
        self._agent = agent = agent_class(**constructor_arguments(settings, agent_class, logger))
        agent.session_id = settings["session_id"]
        agent.context_id = uuid4()
        return {
            "name": str(agent.name()),
            "version": version_of(agent),
            "supports": {
                "resume": bool(getattr(agent, "SUPPORTS_RESUME", False)),
                "windows": bool(getattr(agent, "SUPPORTS_WINDOWS", False)),
            },
        }

    async def carry_out(self, order, connection):
        """Never raises: what the agent has found out so far is told with its failure."""
        outcome, failure = "done", None
        try:
            await self._work(order, connection)
        except asyncio.CancelledError:
            outcome = "cancelled"
        except Exception as error:
            outcome, failure = "failed", describe(error)
        return {
            "outcome": outcome,
            "version": version_of(self._agent),
            "context": None if order["kind"] == "setup" else dump_context(self._context),
            "failure": failure,
        }

    async def _work(self, order, connection):
        kind = order["kind"]
        if kind == "read-logs":
            self._read_logs()
            return
        if self._environment is None:
            self._environment = environment_for(
                stands_on_harbor(type(self._agent)), self._settings
            )
        environment = self._environment
        environment.default_user = order["user"]
        self._see_from_inside(order["env"])
        if kind == "setup":
            environment.connect(connection, lambda: None)
            await self._agent.setup(environment)
            return
        self._context = context = new_context(type(self._agent))
        environment.connect(connection, lambda: dump_context(context))
        await self._agent.run(order["instruction"], environment, context)

    def _see_from_inside(self, env):
        """An installed agent hands its variables on in ways of its own: they have to be right where they are read."""
        own = getattr(self._agent, "_extra_env", None)
        if isinstance(own, dict):
            own.update({name: value for name, value in env.items() if name in own})

    def _read_logs(self):
        """As Harbor does: only what said nothing of its run is asked again."""
        read = getattr(self._agent, "populate_context_post_run", None)
        if read is None or self._context is None:
            return
        if all(value is None for value in dump_context(self._context).values()):
            read(self._context)


def load_class(import_path):
    module_name, _, name = import_path.partition(":")
    module = importlib.import_module(module_name)
    try:
        found = getattr(module, name)
    except AttributeError:
        raise AttributeError(f"module {module_name!r} has no class {name!r}") from None
    if not isinstance(found, type):
        raise TypeError(f"{import_path} is not a class")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise TypeError(f"{import_path} does not implement {missing}")
    refuse_borrowed(found, import_path, module_name)
    return found


def refuse_borrowed(found, import_path, module_name):
    """Harbor's own agents go by their own names only: under another one nobody would see which agent it is, and what is known of it would not be heeded."""
    if is_of_harbor(found.__module__) and not is_of_harbor(module_name):
        own = f"{found.__module__}:{found.__qualname__}"
        raise TypeError(f"{import_path} is Harbor's own agent {own}: name that, or a class of your own")


def is_of_harbor(module_name):
    return module_name.split(".")[:2] == ["harbor", "agents"]


def stands_on_harbor(agent_class):
    return any(base.__module__.split(".")[0] == "harbor" for base in agent_class.__mro__)


def constructor_arguments(settings, agent_class, logger):
    servers = settings["mcp_servers"]
    if stands_on_harbor(agent_class):
        from harbor.models.task.config import MCPServerConfig

        servers = [MCPServerConfig(**server) for server in servers]
    return {
        **settings["kwargs"],
        "logs_dir": Path(settings["logs_dir"]),
        "model_name": settings["model_name"],
        "logger": logger,
        "mcp_servers": servers,
        "skills_dir": settings["skills_dir"],
        "extra_env": dict(settings["extra_env"]),
        "environment_logs_dir": PurePosixPath(settings["environment_logs_dir"]),
    }


def new_context(agent_class):
    if stands_on_harbor(agent_class):
        from harbor.models.agent.context import AgentContext

        return AgentContext()
    return SimpleNamespace(**dict.fromkeys(CONTEXT_FIELDS))


def dump_context(context):
    if context is None:
        return None
    if hasattr(context, "model_dump"):
        # What is no JSON is left out of it as text, rather than losing all the rest.
        dumped = context.model_dump(mode="json", fallback=str)
    else:
        dumped = vars(context)
    return {name: sayable(dumped.get(name)) for name in CONTEXT_FIELDS}


def sayable(value):
    """What JSON has no word for is left out: it must not cost the agent its run."""
    try:
        json.dumps(value, allow_nan=False)
        return value
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        fitted = fit(value, is_strict=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return None if fitted is NOTHING else fitted


def version_of(agent):
    try:
        version = agent.version()
    except Exception:
        return None
    return None if version is None else str(version)


def describe(error):
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {
        "type": type(error).__name__,
        "message": cut(words_of(error)),
        "traceback": text[-MAX_TRACEBACK_LENGTH:].encode("utf-8", "replace").decode("utf-8"),
        "is_exit": any(base.__name__ == EXIT_ERROR for base in type(error).__mro__),
        "refused": refused_code(error),
    }


def refused_code(error):
    """Of the request to the server that the failure goes back to."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        refusal = error if isinstance(error, RefusedError) else getattr(error, "refusal", None)
        if isinstance(refusal, RefusedError):
            return refusal.code
        error = error.__cause__ or error.__context__
    return None
