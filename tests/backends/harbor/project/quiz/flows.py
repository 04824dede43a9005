"""A workflow and a grader that do what the metadata of their row says."""

import json
import time
import urllib.request


class Ask:
    def __init__(self, config):
        self.config = config

    async def run(self, ctx):
        act = ctx.metadata.get("act", "ask")
        print(f"this workflow does: {act}")
        if act == "throws":
            raise ValueError("the workflow does not want to")
        if act == "exits":
            raise SystemExit(3)
        if act == "none":
            return None
        if act == "imports":
            import quizwords

            return [*ctx.prompt, {"role": "assistant", "content": quizwords.WORD}]
        if act == "sleeps":
            time.sleep(3600)
        request = urllib.request.Request(
            f"{ctx.model.base_url}/chat/completions",
            data=json.dumps({"model": "any", "messages": ctx.prompt}).encode(),
            headers={"authorization": f"Bearer {ctx.model.api_key}", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            reply = json.load(answer)["choices"][0]["message"]
        (ctx.artifacts_dir / "asked.txt").write_text("by the workflow")
        if act == "tells":
            reply["content"] += f" {ctx.model.api_key}"
        return {"messages": [*ctx.prompt, reply], "metrics": {"turns": self.config["turns"]}}


class Grade:
    def __init__(self, config):
        self.config = config

    async def grade(self, ctx):
        act = ctx.metadata.get("grade", "compares")
        (ctx.artifacts_dir / "graded.txt").write_text("by the grader")
        if act == "throws":
            raise RuntimeError("the grader does not want to")
        if act == "removes":
            ctx.sample.remove_sample = True
            return
        if act == "nothing":
            return
        ctx.sample.metrics["graded"] = 1
        ctx.set_reward(self.config["right"] if ctx.sample.messages[-1]["content"] == ctx.label else 0.0)
