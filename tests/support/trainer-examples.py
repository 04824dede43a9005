"""Runs the examples of `examples/trainers` over a real server, with classes of the real packages. What these import and nothing of which runs here (torch, Ray) is left out.

Arguments: folders of our Python, of the examples, of the trainers and of miles-rl with pydantic; addresses of the server and of the engine. Prints one JSON object.
"""

import __future__
import ast
import asyncio
import enum
import json
import os
import sys
import types
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

python, examples, trainers, miles, url, engine = sys.argv[1:]
sys.path[:0] = [python, examples, miles]
# Its own, before any module of a trainer is made up.
from pydantic import BaseModel, ConfigDict


def module(name, **names):
    made = types.ModuleType(name)
    made.__dict__.update(names)
    made.__path__ = []
    sys.modules[name] = made
    head, _, last = name.rpartition(".")
    if head:
        setattr(sys.modules[head], last, made)
    return made


def packages(path):
    parts = path.split(".")
    for end in range(1, len(parts)):
        name = ".".join(parts[:end])
        if name not in sys.modules:
            module(name)


def execute(made, file, wanted=None):
    """The source as it is, or some classes and functions of it; annotations are not evaluated."""
    tree = ast.parse(Path(file).read_text())
    if wanted is not None:
        kept = [node for node in tree.body if getattr(node, "name", None) in wanted]
        assert {node.name for node in kept} == set(wanted), file
        tree = ast.Module(kept, [])
    flags = __future__.annotations.compiler_flag if wanted is not None else 0
    exec(compile(tree, str(file), "exec", flags=flags, dont_inherit=True), made.__dict__)
    return made


torch = module("torch", Tensor=object)

packages("verl.experimental.agent_loop.agent_loop")
agent_loop = module(
    "verl.experimental.agent_loop.agent_loop",
    **dict(ABC=ABC, abstractmethod=abstractmethod, Any=Any, Optional=Optional),
    **dict(BaseModel=BaseModel, ConfigDict=ConfigDict, _agent_loop_registry={}, torch=torch),
)
execute(
    agent_loop,
    Path(trainers, "verl/experimental/agent_loop/agent_loop.py"),
    ("AgentLoopMetrics", "AgentLoopOutput", "AgentLoopBase", "register"),
)

packages("skyrl.train.generators.base")
packages("skyrl.backends.skyrl_train.inference_servers.base")
module("skyrl.backends.skyrl_train.inference_servers.base", ConversationType=list)
base = execute(module("skyrl.train.generators.base"), Path(trainers, "skyrl/train/generators/base.py"))
checks = types.ModuleType("checks")
checks.logger = types.SimpleNamespace(warning=lambda *_: None, info=lambda *_: None)
# Of numpy it wants the sum of all masks.
checks.np = types.SimpleNamespace(concatenate=lambda masks: types.SimpleNamespace(sum=lambda: sum(map(sum, masks))))
checks.__dict__.update(base.__dict__)
execute(checks, Path(trainers, "skyrl/train/utils/trainer_utils.py"), ("validate_generator_output",))

packages("slime.utils.types")
slime = module("slime.utils.types", dataclass=dataclass, field=field, Enum=enum.Enum, Any=Any)
execute(slime, Path(miles, "miles/utils/types.py"), ("Sample",))

os.environ.update(SLIPWAY_URL=url, SLIPWAY_MODEL_URL=engine)

import slipway_prime_rl
import slipway_skyrl
import slipway_slime
import slipway_verl
from slipway_client import Client

said = {}
messages = [{"role": "user", "content": "hello"}]
row = {"null": {"agent_calls": 2, "reward": 0.5}}

loop = slipway_verl.SlipwayAgentLoop.__new__(slipway_verl.SlipwayAgentLoop)
given = {"raw_prompt": messages, "extra_info": row, "reward_model": {"ground_truth": "x"}}
output = asyncio.run(loop.run({"temperature": 0.5}, **given))
assert isinstance(output, agent_loop.AgentLoopOutput)
said["verl"] = {
    "registered": list(agent_loop._agent_loop_registry),
    "reward": output.reward_score,
    "lengths": [len(output.response_ids), len(output.response_mask), len(output.response_logprobs)],
    "trained": sum(output.response_mask),
    "fields": sorted(output.model_dump(exclude_unset=True)),
}

generator = slipway_skyrl.SlipwayGenerator(url, engine)
broken = {"null": {"nonsense": True}}
batch = {
    "prompts": [messages, messages, messages],
    "env_classes": ["x"] * 3,
    "env_extras": [row, {**row, "reward_spec": {"ground_truth": "y"}}, broken],
    "sampling_params": {"temperature": 0.5},
    "trajectory_ids": [base.TrajectoryID("a", at) for at in range(3)],
}
generated = asyncio.run(generator.generate(batch))
checks.validate_generator_output(3, generated)
try:
    checks.validate_generator_output(3, {**generated, "loss_masks": [mask[1:] for mask in generated["loss_masks"]]})
    said["shifted masks"] = "taken"
except AssertionError:
    said["shifted masks"] = "refused"
assert set(generated) <= set(base.GeneratorOutput.__annotations__)
said["skyrl"] = {
    "rewards": generated["rewards"],
    "trained": [sum(mask) for mask in generated["loss_masks"]],
    "metrics": generated["rollout_metrics"],
}

with Client(url) as client:
    rows = [{"prompt": "hello", "label": "z", "metadata": row}]
    wanted = {"collector": {"group_size": 2, "batch_groups": 1}, "model": {"url": engine}, "batches": 1}
    (group,) = next(client.collect(rows, **wanted).batches()).groups
samples = slipway_slime.samples_of(group)
assert all(isinstance(sample, slime.Sample) for sample in samples)
said["slime"] = [
    [sample.index, sample.reward, sample.status.value, sample.label, len(sample.loss_mask) == sample.response_length, sum(sample.loss_mask)]
    for sample in samples
]
masked = {**group, "members": [{**group["members"][0], "is_masked": True}, *group["members"][1:]]}
said["slime masked"] = [[sample.remove_sample, sum(sample.loss_mask)] for sample in slipway_slime.samples_of(masked)]

group["members"][0]["reward"] = 1.0
made = slipway_prime_rl.training_samples(group, 0.5)
said["prime-rl"] = [
    [one["advantage"], len({len(one[f"completion_{key}"]) for key in ("ids", "mask", "logprobs", "temperatures")}), sum(one["completion_mask"])]
    for one in made
]
said["prime-rl masked"] = len(slipway_prime_rl.training_samples(masked, 0.5))
print(json.dumps(said))
