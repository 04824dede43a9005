"""Works inside the sandbox of a task: the model says a shell command, the workflow runs it and tells the output, until the model answers."""

import json
import re
import subprocess
import urllib.request

SYSTEM = "Solve the task. To run a shell command, answer with one block ```sh … ```. When you know the answer, say it as the last word."
COMMAND = re.compile(r"```sh\n(.*?)```", re.DOTALL)


class ShellWorkflow:
    def __init__(self, config):
        self.turns = config.get("turns", 8)

    async def run(self, ctx):
        messages = [{"role": "system", "content": SYSTEM}, *ctx.prompt]
        used = 0
        while used < self.turns:
            used += 1
            reply = ask(ctx.model, messages)
            messages.append(reply)
            command = COMMAND.search(reply["content"])
            if command is None:
                break
            messages.append({"role": "user", "content": run_command(command[1])})
        (ctx.artifacts_dir / "last-words.txt").write_text(messages[-1]["content"])
        return {"messages": messages, "metrics": {"turns": used}}


def run_command(command):
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30, check=False)
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def ask(model, messages):
    """One chat completion, at the address of this rollout: the only one that the sandbox reaches."""
    request = urllib.request.Request(
        f"{model.base_url}/chat/completions",
        data=json.dumps({"model": "any", "messages": messages}).encode(),
        headers={"authorization": f"Bearer {model.api_key}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]
