"""The shipped plugin `slipway_miles` under the same orders as `miles-plugin.py`: one JSON object per line, one per answer. The folder of the package is the first argument.

What the plugin keeps for itself, status and body of each answer, is read where it reads it.
"""

import argparse
import asyncio
import json
import sys

sys.path.insert(0, sys.argv[1])

import slipway_miles
from slipway_miles import plugin as shipped
from slipway_miles.http import AnswerError

send = shipped.post
flushes = []
answers = {}
running = {}


async def noted(url, body, bearer=None):
    say_of = flushes.append if url.endswith("/flush") else lambda answer: answers.update({body["instance_id"]: answer})
    try:
        answer = await send(url, body, bearer)
    except AnswerError as error:
        say_of([None, str(error)])
        raise
    say_of([200, answer])
    return answer


shipped.post = noted


def say(**fields):
    print(json.dumps(fields), flush=True)


async def run(order):
    name = order["name"]
    given = {key: order[key] for key in ("base_url", "request_kwargs", "metadata")}
    result = await slipway_miles.run(**given)
    status, answer = answers.get(given["metadata"]["instance_id"], [None, None])
    keys = {"keys": sorted(answer)} if isinstance(answer, dict) else {"answer": answer}
    say(name=name, status=status, result=result, **keys)


async def abort(args):
    flushes.clear()
    await slipway_miles.abort(argparse.Namespace(**args))
    say(abort=flushes)


async def main():
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        if order["op"] == "abort":
            await abort(order["args"])
        elif order["op"] == "hang up":
            running[order["name"]].cancel()
        else:
            running[order["name"]] = asyncio.ensure_future(run(order))
    await asyncio.gather(*running.values())


asyncio.run(main())
