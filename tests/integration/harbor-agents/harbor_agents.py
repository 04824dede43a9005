"""Agents as users of Harbor write them: they know Harbor and nothing of Slipway."""

import asyncio
import json
import os
import urllib.request
from pathlib import Path

from harbor.agents.base import BaseAgent
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.agents.nop import NopAgent as Borrowed  # noqa: F401, a name that hides whose agent it is
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

SCRIPT = Path(__file__).parent / "ask-model.sh"


class ChatAgent(BaseAgent):
    """Asks the model itself, from the host, and carries out what it says."""

    def __init__(self, *args, api_base=None, llm_kwargs=None, answer="/app/answer", **kwargs):
        super().__init__(*args, **kwargs)
        self.answer = answer
        self.api_base = api_base
        self.llm_kwargs = llm_kwargs or {}

    @staticmethod
    def name():
        return "chat-agent"

    def version(self):
        return "1.2.3"

    async def setup(self, environment: BaseEnvironment):
        self.logger.info("set up for %s", environment.type())

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext):
        answer = await asyncio.to_thread(self.ask, instruction)
        result = await environment.exec(answer["choices"][0]["message"]["content"])
        assert await environment.is_file(self.answer)
        context.n_input_tokens = answer["usage"]["prompt_tokens"]
        context.n_output_tokens = answer["usage"]["completion_tokens"]
        context.metadata = {"return_code": result.return_code, "session": self.session_id}

    def ask(self, instruction):
        body = {
            "model": self.model_name.partition("/")[2],
            "messages": [{"role": "user", "content": instruction}],
            "user": str(os.getpid()),
            **self.llm_kwargs.get("extra_body", {}),
        }
        request = urllib.request.Request(
            f"{self.api_base}/chat/completions",
            json.dumps(body).encode(),
            {
                "authorization": f"Bearer {self.llm_kwargs['api_key']}",
                "content-type": "application/json",
            },
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as response:
            return json.load(response)


class InstalledAgent(BaseInstalledAgent):
    """A program that is brought into the sandbox and asks the model from there."""

    @staticmethod
    def name():
        return "installed-agent"

    def get_version_command(self):
        return "/installed-agent/ask-model.sh --version"

    async def install(self, environment: BaseEnvironment):
        await environment.upload_file(SCRIPT, "/installed-agent/ask-model.sh")
        await self.exec_as_root(environment, "chmod 755 /installed-agent/ask-model.sh")

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext):
        await self.exec_as_agent(
            environment,
            "/installed-agent/ask-model.sh | tee /logs/agent/installed-agent.txt",
            env={"INSTRUCTION": instruction},
        )

    def populate_context_post_run(self, context: AgentContext):
        log = (self.logs_dir / "installed-agent.txt").read_text()
        context.metadata = {"log": log}
