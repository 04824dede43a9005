"""A rollout as users of osmosis-ai write it: nothing here knows of Slipway."""

import asyncio
import os

import httpx
from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    AgentWorkflowOutput,
    Grader,
    GraderConfig,
    GraderContext,
    RolloutSample,
    SampleSource,
    get_rollout_context,
)


class MultiTurnConfig(AgentWorkflowConfig):
    model: str = "mock"
    turns: int = 2


class ExactConfig(GraderConfig):
    reward: float = 1.0


workflow_config = MultiTurnConfig(name="multi-turn", turns=3)
grader_config = ExactConfig(name="exact")


async def ask(model, messages):
    """The endpoint and its key are those of the rollout."""
    rollout = get_rollout_context()
    async with httpx.AsyncClient(
        base_url=rollout.chat_completions_url.rstrip("/"),
        headers={"authorization": f"Bearer {rollout.api_key}"},
        timeout=60,
    ) as client:
        answer = await client.post(
            "/chat/completions", json={"model": model, "messages": messages}
        )
        answer.raise_for_status()
        return answer.json()["choices"][0]["message"]


async def wait_if_told(ctx):
    if ctx.metadata.get("waits"):
        (ctx.artifacts_dir / "pid").write_text(str(os.getpid()))
        await asyncio.sleep(3600)


class MultiTurnWorkflow(AgentWorkflow[MultiTurnConfig]):
    async def run(self, ctx: AgentWorkflowContext[MultiTurnConfig]):
        assert ctx.config is self.config and isinstance(ctx.config, MultiTurnConfig)
        messages = list(ctx.prompt)
        for turn in range(ctx.config.turns):
            message = await ask(ctx.config.model, messages)
            messages.append({"role": "assistant", "content": message["content"]})
            if turn + 1 < ctx.config.turns:
                messages.append({"role": "user", "content": f"{ctx.prompt[0]['content']} again"})
        (ctx.artifacts_dir / "turns.txt").write_text(str(ctx.config.turns))
        await wait_if_told(ctx)
        return AgentWorkflowOutput(messages=messages, metrics={"turns": ctx.config.turns})


class Transcript(SampleSource):
    """What an agent framework's session is for the SDK."""

    def __init__(self):
        self.items = []
        get_rollout_context().set_sample_source(self)

    async def get_sample(self):
        chat = [{"role": item["who"], "content": item["said"]} for item in self.items]
        return RolloutSample(messages=self.items, trajectory_messages=chat, metrics={"items": len(chat)})


class SessionWorkflow(AgentWorkflow):
    async def run(self, ctx):
        await wait_if_told(ctx)
        session = Transcript()
        if ctx.metadata.get("two_sessions"):
            Transcript()
        session.items.append({"who": "user", "said": ctx.prompt[0]["content"]})
        message = await ask("mock", ctx.prompt)
        session.items.append({"who": "assistant", "said": message["content"]})


class ExactGrader(Grader):
    async def grade(self, ctx: GraderContext):
        last = ctx.sample.messages[-1]
        said = last.get("content") or last.get("said")
        # A judge: it asks the rollout's model as well.
        judged = await ask("mock", [{"role": "user", "content": f"judge {said}"}])
        ctx.sample.extra_fields["judged"] = judged["content"]
        full = self.config.reward if self.config is not None else 1.0
        ctx.set_reward(full if said == ctx.label else 0.0)
