"""A workflow of osmosis-ai whose work is done by an agent class of Harbor, where the workflow runs: nothing in here knows of Slipway."""

import asyncio
import shutil
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.agent.context import AgentContext
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths
from osmosis_ai.rollout.agent_workflow import AgentWorkflow
from osmosis_ai.rollout.context import AgentWorkflowContext, GraderContext, get_rollout_context
from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.types import AgentWorkflowOutput

from harbor_agents import ChatAgent


class FolderEnvironment(BaseEnvironment):
    """Commands run in a folder, beside this process."""

    def __init__(self, folder: Path):
        super().__init__(
            environment_dir=folder,
            environment_name=folder.name,
            session_id=folder.name,
            trial_paths=TrialPaths(folder),
            task_env_config=EnvironmentConfig(),
        )
        self.folder = folder

    @staticmethod
    def type():
        return "folder"

    def _validate_definition(self):
        pass

    async def start(self, force_build):
        pass

    async def stop(self, delete):
        pass

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", command, cwd=cwd or self.folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        stdout, stderr = await asyncio.wait_for(process.communicate(), timeout_sec)
        return ExecResult(stdout=stdout.decode(), stderr=stderr.decode(), return_code=process.returncode)

    async def upload_file(self, source_path, target_path):
        shutil.copyfile(source_path, self.folder / target_path)

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self.folder / target_dir, dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        shutil.copyfile(self.folder / source_path, target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self.folder / source_dir, target_dir, dirs_exist_ok=True)


class HarborAgentWorkflow(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> AgentWorkflowOutput:
        rollout = get_rollout_context()
        environment = FolderEnvironment(ctx.artifacts_dir)
        agent = ChatAgent(
            logs_dir=ctx.artifacts_dir,
            model_name="openai/some-model",
            api_base=rollout.chat_completions_url.rstrip("/"),
            llm_kwargs={"api_key": rollout.api_key},
            answer="answer",
        )
        context = AgentContext()
        await agent.setup(environment)
        await agent.run(ctx.prompt[-1]["content"], environment, context)
        said = (ctx.artifacts_dir / "answer").read_text().strip()
        return AgentWorkflowOutput(
            messages=[*ctx.prompt, {"role": "assistant", "content": said}],
            metrics={"output_tokens": context.n_output_tokens},
        )


class AnswerGrader(Grader):
    async def grade(self, ctx: GraderContext) -> None:
        ctx.set_reward(1.0 if ctx.sample.messages[-1]["content"] == ctx.label else 0.25)
