"""Drives a rollout server with the HTTP driver, callback store and listener of osmosis-ai, as they are. One JSON command per line of input, one JSON
answer per line of output. The library is only called and listened to: what this file adds are the records that a test looks at."""

import asyncio
import json
import logging
import sys
from importlib.metadata import version

import httpx
from osmosis_ai.rollout.controller import CallbackListener, CallbackStore
from osmosis_ai.rollout.driver import RolloutRunRequest
from osmosis_ai.rollout.http_driver import HttpRolloutDriver

CALLBACK_KEY = "key-of-the-callbacks"
MODEL_KEY = "key-of-the-model"


class Records(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.name} {record.levelname}: {record.getMessage()}")


def plain(model):
    return None if model is None else model.model_dump(mode="json")


async def run(command):
    """Runs rollouts with a store, listener and driver of their own."""
    commits = []
    answers = []
    fail_commits = command.get("fail_commits", 0)

    async def commit(result):
        nonlocal fail_commits
        if fail_commits > 0:
            fail_commits -= 1
            raise OSError("the disk is full")
        commits.append(
            {
                "rollout_id": result.rollout_id,
                "source": result.source,
                "completion": plain(result.completion),
                "grader": plain(result.grader),
            }
        )
        return command.get("acknowledgment")

    async def note(response):
        await response.aread()
        answers.append(
            {
                "path": response.request.url.path,
                "status": response.status_code,
                "retry_after": response.headers.get("retry-after"),
                "body": response.json(),
            }
        )

    store = CallbackStore(on_terminal_commit=commit)
    async with (
        CallbackListener(store, auth_token=CALLBACK_KEY) as listener,
        httpx.AsyncClient(event_hooks={"response": [note]}, timeout=60) as client,
    ):
        base = command.get("callback_base")

        def outside(url):
            return url if base is None else url.replace(listener.base_url, base)

        print(json.dumps({"listener": listener.base_url}), flush=True)
        driver = HttpRolloutDriver(
            rollout_base_url=command["server"],
            callback_store=store,
            completion_url_for=lambda each: outside(listener.completion_url(each)),
            grader_url_for=lambda each: outside(listener.grader_url(each)),
            chat_completions_url_for=listener.chat_completions_url,
            chat_api_key=MODEL_KEY,
            controller_api_key=CALLBACK_KEY,
            http_client=client,
            callback_timeout_sec=command.get("callback_timeout_sec"),
        )

        async def one(rollout):
            try:
                outcome = await driver.run(RolloutRunRequest(**rollout))
            except Exception as error:
                return {"rollout_id": rollout["rollout_id"], "raised": repr(error)}
            return {
                "rollout_id": outcome.rollout_id,
                "status": outcome.status.value,
                "error": outcome.error,
                "sample": plain(outcome.sample),
            }

        outcomes = await asyncio.gather(*(one(each) for each in command["rollouts"]))
        # A callback whose acknowledgement was lost comes once more.
        await asyncio.sleep(command.get("linger_sec", 0))
        await driver.aclose()
    return {"outcomes": outcomes, "commits": commits, "answers": answers}


async def main():
    records = Records()
    logging.getLogger().addHandler(records)
    print(json.dumps({"version": version("osmosis-ai"), "python": sys.version}), flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    while line := await lines.readline():
        records.lines.clear()
        result = await run(json.loads(line))
        print(json.dumps({**result, "warnings": records.lines}), flush=True)


asyncio.run(main())
