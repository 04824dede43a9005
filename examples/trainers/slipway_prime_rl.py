"""Training samples of prime-rl from groups that Slipway collected, as plain fields: `TrainingSample(**fields)` where its orchestrator makes them.

    for batch in collection.batches():
        samples = [fields for group in batch.groups for fields in training_samples(group, temperature=1.0)]
"""


def training_samples(group, temperature):
    """One for each sample. The advantage is the reward less the mean of the group; members out of the baseline have none and are left out."""
    members = [member for member in group["members"] if not member["is_masked"] and member["reward"] is not None]
    if not members:
        return []
    mean = sum(member["reward"] for member in members) / len(members)
    return [
        fields_of(sample, member["reward"], member["reward"] - mean, temperature)
        for member in members
        if not member["is_removed"]
        for sample in member["samples"]
        # Without log-probabilities there is no ratio to the policy that sampled.
        if sample["log_probs"] is not None
    ]


def fields_of(sample, reward, advantage, temperature):
    begin = sample["prompt_length"]
    completion = sample["tokens"][begin:]
    return {
        "prompt_ids": sample["tokens"][:begin],
        "prompt_mask": [False] * begin,
        "completion_ids": completion,
        "completion_mask": [mask == 1 for mask in sample["loss_mask"]],
        "completion_logprobs": sample["log_probs"],
        "completion_temperatures": [temperature] * len(completion),
        "reward": reward,
        "advantage": advantage,
    }
