"""A generator of SkyRL whose rollouts Slipway runs: hand `SlipwayGenerator(url, model_url)` to the trainer in place of its own.

One rollout for each prompt of the batch, in its order. `reward_spec.ground_truth` of a row's extras is its label; the other extras are its metadata.
"""

import asyncio

from skyrl.train.generators.base import GeneratorInterface
from slipway_client import Client

ROLLOUT_SECONDS = 7200


class SlipwayGenerator(GeneratorInterface):
    def __init__(self, url, model_url, model_key=None):
        self._url = url
        self._model = {"model_url": model_url, "model_key": model_key}

    async def generate(self, input_batch):
        return await asyncio.to_thread(self._generate, input_batch)

    def _generate(self, batch):
        prompts = batch["prompts"]
        extras = batch.get("env_extras") or [{} for _ in prompts]
        with Client(self._url) as client:
            ids = [
                client.submit(
                    prompt,
                    label=(extra.get("reward_spec") or {}).get("ground_truth"),
                    metadata={
                        **{key: value for key, value in extra.items() if key != "reward_spec"},
                        "slipway_gateway": {"sampling": dict(batch.get("sampling_params") or {})},
                    },
                    **self._model,
                )
                for prompt, extra in zip(prompts, extras)
            ]
            rows = [row_of(client, one) for one in ids]
        return generator_output(rows, batch.get("trajectory_ids"))


def row_of(client, rollout_id):
    """Its last sample; None for a rollout that came to none."""
    outcome = client.wait(rollout_id, timeout=ROLLOUT_SECONDS)["outcome"] or {}
    if not (outcome.get("samples") or {}).get("count"):
        return None
    *_, sample = (line for line in client.samples(rollout_id) if "sample" in line)
    return sample


# SkyRL wants a response for every prompt: one token that is out of the loss, with a reward of 0.
LOST = {"tokens": [0, 0], "prompt_length": 1, "loss_mask": [0], "log_probs": [0.0], "reward": 0.0, "status": "failed"}


def generator_output(rows, trajectory_ids=None):
    rows = [LOST if row is None else row for row in rows]
    has_log_probs = all(row["log_probs"] is not None for row in rows)
    return {
        "prompt_token_ids": [row["tokens"][: row["prompt_length"]] for row in rows],
        "response_ids": [row["tokens"][row["prompt_length"] :] for row in rows],
        "rewards": [float(row["reward"] or 0.0) for row in rows],
        "loss_masks": [row["loss_mask"] for row in rows],
        "stop_reasons": ["length" if row["status"] == "truncated" else "stop" for row in rows],
        "rollout_metrics": {"slipway/lost": sum(row is LOST for row in rows)},
        "rollout_logprobs": [row["log_probs"] for row in rows] if has_log_probs else None,
        "trajectory_ids": trajectory_ids,
        "is_last_step": None,
    }
