"""Agents with the methods of Harbor's, without Harbor."""

import asyncio
import os
import signal
import sys
import time


class Agent:
    """Solves the task, and says what it was given."""

    SUPPORTS_RESUME = True

    def __init__(self, logs_dir, model_name, logger, extra_env, skills_dir, mcp_servers, environment_logs_dir, **kwargs):
        self.logs_dir = logs_dir
        self.logger = logger
        self.given = {
            "model_name": model_name,
            "extra_env": extra_env,
            "skills_dir": skills_dir,
            "mcp_servers": mcp_servers,
            "environment_logs_dir": str(environment_logs_dir),
            "kwargs": kwargs,
        }
        self._version = None

    @staticmethod
    def name():
        return "plain"

    def version(self):
        return self._version

    async def setup(self, environment):
        print("a line of print")
        self.logger.info("a line of the log")
        self._version = "4.5"

    async def run(self, instruction, environment, context):
        await self.work(instruction, environment, context)

    async def work(self, instruction, environment, context):
        result = await environment.exec("echo yes > /app/answer", cwd="/app")
        context.n_input_tokens = 11
        context.n_output_tokens = 3
        context.cost_usd = 0.5
        context.metadata = {**self.given, "instruction": instruction, "code": result.return_code}


class TellsOddly(Agent):
    async def work(self, instruction, environment, context):
        context.n_input_tokens = "many"
        context.n_output_tokens = 3
        context.cost_usd = float("nan")
        context.metadata = {"seen": {1, 2}, "turns": 2, "loss": float("inf")}
        await environment.exec("echo yes > /app/answer")
        holds_itself = []
        holds_itself.append(holds_itself)
        context.rollout_details = holds_itself


class Variables(Agent):
    async def work(self, instruction, environment, context):
        said = {}
        for name, env in (("own", {"A": "request", "B": "request"}), ("none", None)):
            result = await environment.exec("echo $A,$B", env=env)
            said[name] = result.stdout.strip()
        with environment.scoped_exec_env({"A": "scoped"}):
            said["scoped"] = (await environment.exec("echo $A,$B", env={"A": "request"})).stdout.strip()
        context.metadata = said


class Address(Agent):
    def __init__(self, extra_env, **given):
        super().__init__(extra_env=extra_env, **given)
        self._extra_env = dict(extra_env)

    async def work(self, instruction, environment, context):
        context.metadata = {
            "own": self._extra_env["OPENAI_BASE_URL"],
            "inside": (await environment.exec("echo $OPENAI_BASE_URL")).stdout.strip(),
            "others": self._extra_env["OTHER"],
        }


class Transfers(Agent):
    async def work(self, instruction, environment, context):
        source = self.logs_dir / "sent.txt"
        source.write_text("yes\n")
        await environment.upload_file(source, "/app/answer")
        await environment.download_file("/app/answer", self.logs_dir / "deep" / "back.txt")
        (self.logs_dir / "tree").mkdir()
        (self.logs_dir / "tree" / "one.txt").write_text("1")
        await environment.upload_dir(self.logs_dir / "tree", "/app/tree")
        await environment.download_dir("/app/tree", self.logs_dir / "tree-back")
        context.metadata = {
            "back": (self.logs_dir / "deep" / "back.txt").read_text(),
            "tree": (self.logs_dir / "tree-back" / "one.txt").read_text(),
            "is_file": await environment.is_file("/app/answer"),
            "is_dir": await environment.is_dir("/app/answer"),
        }


class Fails(Agent):
    async def work(self, instruction, environment, context):
        await super().work(instruction, environment, context)
        raise LookupError("the agent has lost its way")


class NonZeroAgentExitCodeError(RuntimeError):
    pass


class ApiRateLimitError(NonZeroAgentExitCodeError):
    pass


class Exits(Fails):
    async def work(self, instruction, environment, context):
        await Agent.work(self, instruction, environment, context)
        raise ApiRateLimitError("Command failed (exit 1): agent")


class LosesConnection(Agent):
    async def work(self, instruction, environment, context):
        raise TimeoutError("the model does not answer")


class AgentTimeoutError(asyncio.TimeoutError):
    pass


class ClaimsItsLimit(Agent):
    async def work(self, instruction, environment, context):
        raise AgentTimeoutError("timed out after 1 second")


class LosesSandbox(Agent):
    async def work(self, instruction, environment, context):
        try:
            await environment.exec("echo lost")
        except RuntimeError as error:
            raise ValueError("wrapped") from error


class FailsInSetup(Agent):
    async def setup(self, environment):
        raise RuntimeError("nothing can be installed here")


class Waits(Agent):
    async def work(self, instruction, environment, context):
        await super().work(instruction, environment, context)
        await asyncio.sleep(600)


class TimesOutWhenStopped(Agent):
    async def work(self, instruction, environment, context):
        await super().work(instruction, environment, context)
        try:
            await environment.exec("true")
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            raise TimeoutError("the agent was too slow") from None


class EndsMidLine(Agent):
    async def work(self, instruction, environment, context):
        await super().work(instruction, environment, context)
        sys.stdout.write("the last line has no end")


class WritesPid(Agent):
    async def work(self, instruction, environment, context):
        pid = self.logs_dir / "pid.part"
        pid.write_text(str(os.getpid()))
        pid.rename(self.logs_dir / "pid.txt")
        if self.given["kwargs"].get("waits"):
            await asyncio.sleep(600)


class IgnoresCancel(Agent):
    async def work(self, instruction, environment, context):
        await super().work(instruction, environment, context)
        await environment.exec("true")
        time.sleep(600)


class KillsItself(Agent):
    async def work(self, instruction, environment, context):
        os.kill(os.getpid(), signal.SIGKILL)


class Leaves(Agent):
    async def work(self, instruction, environment, context):
        print("cannot go on", file=sys.stderr)
        os._exit(3)


class ReadsLogs(Agent):
    async def work(self, instruction, environment, context):
        await environment.exec("echo yes > /app/answer; echo 17 > /logs/agent/tokens.txt")

    def populate_context_post_run(self, context):
        context.n_output_tokens = int((self.logs_dir / "tokens.txt").read_text())
        (self.logs_dir / "trajectory.json").write_text("{}")


class CannotReadLogs(ReadsLogs):
    def populate_context_post_run(self, context):
        raise KeyError("tokens")


class Refuses(Agent):
    def __init__(self, **given):
        raise ValueError("mode must be fast or slow")


NotAClass = "text"
