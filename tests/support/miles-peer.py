"""What `miles-rl` makes of a session server and an agent server: its own modules as they are, over a folder of packages that is the first argument.

Reads one JSON object per line and prints one for each: {"op": "generate", "args", "sample"} runs the package's agentic generate function, with the agent function that
the arguments name; {"op": "records", "args", "turns"} makes a session, plays turns in it and collects its records; {"op": "post", "url", "body"} is the package's
HTTP helper; {"op": "abort", "args"} is the hook of `slipway_miles`. What needs an accelerator or an engine is stood in for by empty modules: none of it is called.
"""

import argparse
import asyncio
import dataclasses
import importlib.abc
import importlib.machinery
import json
import logging
import sys
from unittest.mock import MagicMock

sys.path[:0] = [sys.argv[1], sys.argv[2]]

ABSENT = {
    *("huggingface_hub", "numpy", "pyarrow", "pybase64", "ray", "sglang", "tokenizers", "torch"),
    "transformers",
}
# Of the engine's model of a request: what a trainer's sampling parameters can be.
CHAT_FIELDS = ["max_tokens", "min_tokens", "messages", "model", "seed", "stop", "temperature"]


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__ = []
        module.__spec__ = spec
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Absent())

from miles.rollout.generate_hub import agentic_tool_call
from miles.rollout.generate_utils.openai_endpoint_utils import OpenAIEndpointTracer
from miles.utils import http_utils
from miles.utils.types import Sample

import slipway_miles

logging.getLogger("miles").setLevel(logging.ERROR)
agentic_tool_call.ChatCompletionRequest.model_fields = CHAT_FIELDS
http_utils.init_http_client(
    argparse.Namespace(
        rollout_num_gpus=8,
        rollout_num_gpus_per_engine=1,
        sglang_server_concurrency=8,
        use_distributed_post=False,
    )
)


class Tokenizer:
    def decode(self, ids):
        return " ".join(map(str, ids))


async def play(base_url, turns, **fields):
    """Each turn says what it is given, behind the answers that came before it."""
    messages = []
    answer = None
    for turn in turns:
        messages += turn
        body = {"model": "toy", "messages": messages, **fields}
        answer = await http_utils.post(f"{base_url}/v1/chat/completions", body, max_retries=1)
        messages.append(answer["choices"][0]["message"])
    return answer


async def talkative(base_url, prompt, request_kwargs, metadata, **_):
    """An agent that works in this process, and whose trial is judged by the agent server."""
    await play(base_url, [prompt, *metadata["turns"]], **request_kwargs)
    return await slipway_miles.run(
        base_url=base_url, prompt=prompt, request_kwargs=request_kwargs, metadata=metadata
    )


agents = sys.modules["peer_agents"] = type(sys)("peer_agents")
agents.talkative = talkative


async def generate(order):
    args = argparse.Namespace(**order["args"])
    sample = Sample(**order["sample"])
    given = argparse.Namespace(
        args=args,
        sample=sample,
        sampling_params=order["sampling"],
        state=argparse.Namespace(tokenizer=Tokenizer()),
        evaluation=False,
    )
    made = (await agentic_tool_call.generate(given)).samples
    fields = {
        *("tokens", "response_length", "loss_mask", "rollout_log_probs", "weight_versions"),
        *("metadata", "index", "prompt"),
    }
    values = {name: getattr(made, name) for name in fields}
    counted = dataclasses.asdict(made.prefix_cache_info)
    return {**values, "status": made.status.value, "prefix_cache_info": counted}


async def records(order):
    args = argparse.Namespace(**order["args"])
    tracer = await OpenAIEndpointTracer.create(args)
    await play(tracer.base_url, order["turns"])
    found, metadata = await tracer.collect_records()
    instances = [tracer.session_server_instance_id, args.session_server_instance_id]
    return {
        "records": [record.model_dump() for record in found],
        "metadata": metadata,
        "instances": instances,
        "session": tracer.session_id,
    }


async def post(order):
    return await http_utils.post(order["url"], order["body"], max_retries=1)


async def abort(order):
    return await slipway_miles.abort(argparse.Namespace(**order["args"]))


async def answer(order):
    try:
        result = await globals()[order["op"]](order)
        said = {"result": result}
    except Exception as error:
        said = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps({"name": order["name"], **said}), flush=True)


async def main():
    tasks = []
    while line := await asyncio.to_thread(sys.stdin.readline):
        tasks.append(asyncio.ensure_future(answer(json.loads(line))))
    await asyncio.gather(*tasks)


asyncio.run(main())
