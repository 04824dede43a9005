"""A rollout function of slime whose groups Slipway collects: `--rollout-function-path slipway_slime.generate_rollout`.

SLIPWAY_URL names the server; `args.sglang_router_ip` and `args.sglang_router_port` are where the agents' calls go and what is aborted. Rows are those of
`args.prompt_data`, a file of the server's folder of datasets.
"""

import os

from slime.utils.types import Sample
from slipway_client import Client

_collections = {}


def generate_rollout(args, rollout_id, data_source, evaluation=False):
    """One batch: a list of groups of samples. Oversampling, filters and refills are options of the collection (docs/server-api.md)."""
    if evaluation:
        raise NotImplementedError("evaluate with `slipway eval`")
    if "batches" not in _collections:
        router = f"http://{args.sglang_router_ip}:{args.sglang_router_port}"
        _collections["of"] = Client(os.environ["SLIPWAY_URL"]).collect(
            file=args.prompt_data,
            dataset={"prompt": args.input_key, "label": args.label_key, "epochs": args.num_epoch},
            model={"url": f"{router}/v1"},
            engines={"router_url": router},
            collector={
                "group_size": args.n_samples_per_prompt,
                "batch_groups": args.rollout_batch_size,
                "start_groups": args.over_sampling_batch_size or args.rollout_batch_size,
            },
        )
        _collections["batches"] = _collections["of"].batches()
    # What is started from here on is sampled by the weights of this step.
    _collections["of"].weight_version(rollout_id)
    return [samples_of(group) for group in next(_collections["batches"]).groups]


def samples_of(group):
    """Members that were masked and had no sample are left out: there is nothing of them to train."""
    return [
        sample_of(group, member, sample)
        for member in group["members"]
        for sample in member["samples"]
    ]


def sample_of(group, member, sample):
    begin = sample["prompt_length"]
    is_out = member["is_masked"] or member["is_removed"]
    return Sample(
        group_index=group["group"],
        index=group["group"] * len(group["members"]) + member["member"],
        prompt=group["prompt"],
        tokens=sample["tokens"],
        response_length=len(sample["tokens"]) - begin,
        label=group["label"],
        reward=member["reward"],
        loss_mask=[0] * len(sample["loss_mask"]) if is_out else sample["loss_mask"],
        rollout_log_probs=sample["log_probs"],
        weight_versions=[span["weight_version"] for span in sample["spans"] if span["weight_version"]],
        remove_sample=is_out,
        status=Sample.Status.TRUNCATED if sample["is_truncated"] else Sample.Status.COMPLETED,
        metadata={**group["metadata"], "slipway_rollout": member["rollout_id"]},
    )
