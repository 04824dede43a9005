"""Workflows for servers under load: one that does nothing, and one whose model asks for programs that do not want to end."""

import json
import signal
import subprocess
import urllib.request


class Quick:
    def __init__(self, config):
        self.config = config

    async def run(self, ctx):
        return [*ctx.prompt, {"role": "assistant", "content": "done"}]


class Stubborn:
    """Carries out what the model says, deaf to the signals that would end it, until the model has nothing more to say."""

    def __init__(self, config):
        self.config = config

    async def run(self, ctx):
        for deaf in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(deaf, signal.SIG_IGN)
        messages = list(ctx.prompt)
        while True:
            said = self.ask(ctx.model, messages)
            messages.append({"role": "assistant", "content": said})
            commands = json.loads(said)["commands"]
            if not commands:
                return messages
            for command in commands:
                subprocess.run(["bash", "-c", command["keystrokes"]], check=False)
            messages.append({"role": "user", "content": "and now?"})

    def ask(self, model, messages):
        request = urllib.request.Request(
            f"{model.base_url}/chat/completions",
            data=json.dumps({"model": "any", "messages": messages}).encode(),
            headers={"authorization": f"Bearer {model.api_key}", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
