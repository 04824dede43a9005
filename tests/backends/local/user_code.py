"""Workflows and graders without an SDK that do what the request's metadata says: the user's module of the tests."""

import asyncio
import copy
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

ANSWER = [{"role": "assistant", "content": "done"}]
served = 0
usual = {"name": "an object", "turns": [1, 2]}


class Indescribable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def said(text):
    return [{"role": "assistant", "content": text}]


async def echo(ctx, config):
    model = {"base_url": ctx.model.base_url, "api_key": ctx.model.api_key}
    return {
        "messages": ctx.prompt
        + [{"role": "assistant", "metadata": ctx.metadata, "config": config, "model": model}]
    }


async def circular(_ctx, _config):
    message = {"role": "assistant"}
    message["self"] = message
    return [message]


async def throws(error):
    raise error


async def heeds(_ctx, _config):
    await asyncio.sleep(3600)


async def swallows(_ctx, _config):
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        pass
    return ANSWER


async def refuses(_ctx, _config):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


async def loops(_ctx, _config):
    while True:
        pass


async def blocks(_ctx, _config):
    time.sleep(0.4)
    return ANSWER


async def chats(ctx, _config):
    for line in range(1, 21):
        print(ctx.metadata["who"], line, file=sys.stderr if line % 2 else sys.stdout)
    os.write(1, b"past Python\n")
    return ANSWER


async def artifacts(ctx, _config):
    (ctx.artifacts_dir / "note.txt").write_text("kept")
    return ANSWER


async def counts(_ctx, _config):
    global served
    served += 1
    return said(str(served))


async def spoils_config(ctx, config):
    seen = copy.deepcopy(config)
    config["turns"].append(3)
    return said(seen["turns"])


async def leaves_task(ctx, config):
    asyncio.get_running_loop().create_task(asyncio.sleep(3600))
    return await counts(ctx, config)


async def leaves_thread(ctx, config):
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    return await counts(ctx, config)


async def leaves_child(ctx, config):
    child = subprocess.Popen(["sleep", "3600"])
    await counts(ctx, config)
    return said(str(child.pid))


async def works_in_thread(ctx, config):
    await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0)
    return await counts(ctx, config)


async def eats_memory(_ctx, _config):
    kept = []
    while True:
        kept.append(bytearray(1_000_000))


async def reads(_ctx, _config):
    return said(sys.stdin.read() + "|nothing")


async def pid(ctx, _config):
    (ctx.artifacts_dir / "pid").write_text(str(os.getpid()))
    await asyncio.sleep(3600)


WORKFLOWS = {
    "echo": echo,
    "list": lambda ctx, config: same(ANSWER),
    "output": lambda ctx, config: same({"messages": ANSWER, "metrics": {"turns": 2}, "info": {}}),
    "nothing": lambda ctx, config: same(None),
    "null-messages": lambda ctx, config: same({"messages": None}),
    "plain": lambda ctx, config: ANSWER,
    "text": lambda ctx, config: same("done"),
    "unknown-key": lambda ctx, config: same({"messages": ANSWER, "reward": 1}),
    "nan-metric": lambda ctx, config: same({"messages": ANSWER, "metrics": {"loss": float("nan")}}),
    "circular": circular,
    "no-json": lambda ctx, config: same([{"role": "assistant", "content": object()}]),
    "too-long": lambda ctx, config: same(said("x" * (17 * 1024 * 1024))),
    "throws": lambda ctx, config: throws(OSError("the tool broke")),
    "throws-value": lambda ctx, config: throws(ValueError("a wrong value")),
    "throws-key": lambda ctx, config: throws(KeyError("absent")),
    "throws-timeout": lambda ctx, config: throws(TimeoutError("the tool took too long")),
    "throws-secret": lambda ctx, config: throws(OSError(f"refused: {ctx.model.api_key}")),
    "throws-wordless": lambda ctx, config: throws(Indescribable()),
    "exits": lambda ctx, config: sys.exit(3),
    "crashes": lambda ctx, config: ctypes.string_at(0),
    "kills-itself": lambda ctx, config: os.kill(os.getpid(), signal.SIGKILL),
    "eats-memory": eats_memory,
    "heeds": heeds,
    "swallows": swallows,
    "refuses": refuses,
    "loops": loops,
    "blocks": blocks,
    "chats": chats,
    "artifacts": artifacts,
    "counts": counts,
    "spoils-config": spoils_config,
    "leaves-task": leaves_task,
    "leaves-thread": leaves_thread,
    "leaves-child": leaves_child,
    "works-in-thread": works_in_thread,
    "reads": reads,
    "pid": pid,
}


async def same(value):
    return value


class Workflow:
    def __init__(self, config):
        self.config = config
        if config.get("name") == "broken":
            raise OSError("no such model")

    def run(self, ctx):
        return WORKFLOWS[ctx.metadata["act"]](ctx, self.config)


async def edits(ctx):
    ctx.sample.messages.append({"role": "assistant", "content": "more"})
    ctx.sample.metrics["seen"] = ctx.label
    ctx.sample.metrics["lost"] = float("inf")
    ctx.sample.extra_fields["judge"] = ctx.model.base_url
    ctx.set_reward(0.25)


async def removes(ctx):
    ctx.sample.remove_sample = True


GRADES = {
    "seven": lambda ctx: ctx.set_reward(7),
    "zero": lambda ctx: ctx.set_reward(0),
    "edits": edits,
    "removes": removes,
    "none": lambda ctx: None,
    "nan": lambda ctx: ctx.set_reward(float("nan")),
    "text": lambda ctx: ctx.set_reward("much"),
    "throws": lambda ctx: throws(OSError("the judge broke")),
    "unsayable": lambda ctx: (ctx.set_reward(1), ctx.sample.messages.append({"role": object()})),
    "swallows": lambda ctx: swallows(ctx, None),
    "exits": lambda ctx: os._exit(4),
}


class TestGrader:
    def __init__(self, config):
        self.config = config

    async def grade(self, ctx):
        done = GRADES[ctx.metadata["grade"]](ctx)
        if asyncio.iscoroutine(done):
            await done
        return "nobody looks at this"


class NoMethod:
    pass
