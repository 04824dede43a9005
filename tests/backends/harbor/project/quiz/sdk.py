"""A workflow and a grader as they are written for osmosis-ai: nothing in here knows of Slipway."""

import httpx
from osmosis_ai.rollout.agent_workflow import AgentWorkflow
from osmosis_ai.rollout.context import AgentWorkflowContext, GraderContext, get_rollout_context
from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.types import AgentWorkflowOutput


class SdkWorkflow(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> AgentWorkflowOutput:
        rollout = get_rollout_context()
        async with httpx.AsyncClient(timeout=60) as client:
            answer = await client.post(
                f"{rollout.chat_completions_url}/chat/completions",
                headers={"authorization": f"Bearer {rollout.api_key}"},
                json={"model": "osmosis-rollout", "messages": ctx.prompt},
            )
        answer.raise_for_status()
        message = answer.json()["choices"][0]["message"]
        (ctx.artifacts_dir / "answer.txt").write_text(message["content"])
        return AgentWorkflowOutput(messages=[*ctx.prompt, message], metrics={"turns": 1})


class SdkGrader(Grader):
    async def grade(self, ctx: GraderContext) -> None:
        ctx.set_reward(1.0 if ctx.sample.messages[-1]["content"] == ctx.label else 0.25)
