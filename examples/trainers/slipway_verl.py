"""An agent loop of verl whose rollouts Slipway runs: `actor_rollout_ref.rollout.agent.default_agent_loop=slipway`, with this module imported in the workers.

SLIPWAY_URL names the server, SLIPWAY_MODEL_URL the chat completions of verl's engine as the server reaches them. Each row is one rollout: `raw_prompt` its messages,
`reward_model.ground_truth` its label, `extra_info` its metadata.
"""

import asyncio
import os

from slipway_client import Client
from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
    register,
)

ROLLOUT_SECONDS = 7200


@register("slipway")
class SlipwayAgentLoop(AgentLoopBase):
    async def run(self, sampling_params, **row):
        return await asyncio.to_thread(run_row, sampling_params, row)


def run_row(sampling_params, row):
    with Client(os.environ["SLIPWAY_URL"]) as client:
        rollout_id = client.submit(
            [dict(message) for message in row["raw_prompt"]],
            label=(row.get("reward_model") or {}).get("ground_truth"),
            metadata={
                **(row.get("extra_info") or {}),
                "slipway_gateway": {"sampling": dict(sampling_params)},
            },
            model_url=os.environ["SLIPWAY_MODEL_URL"],
        )
        rollout = client.wait(rollout_id, timeout=ROLLOUT_SECONDS)
        # A rollout without samples fails here, and with it verl's batch: verl has no word for a row that was lost.
        return output_of(rollout, client.samples(rollout_id))


def output_of(rollout, lines):
    """Of several samples (histories that branched) the last one: verl takes one for each row."""
    *_, sample = (line for line in lines if "sample" in line)
    begin = sample["prompt_length"]
    return AgentLoopOutput(
        prompt_ids=sample["tokens"][:begin],
        response_ids=sample["tokens"][begin:],
        response_mask=sample["loss_mask"],
        response_logprobs=sample["log_probs"],
        reward_score=sample["reward"],
        num_turns=2 * len(sample["calls"]),
        metrics=AgentLoopMetrics(),
        extra_fields={"slipway_rollout": rollout["id"]},
    )
