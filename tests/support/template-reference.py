"""Renders conversations as the Python packages do it: one JSON job per line in, one JSON answer per line out. The first argument is the folder of packages."""

import json
import sys

sys.path.insert(0, sys.argv[1])

from miles_tito_tokenizers import template_jinja  # noqa: E402
from miles_tito_tokenizers.encoders import deepseek_v4, deepseek_v32  # noqa: E402
from miles_tito_tokenizers.message_utils import normalize_tool_arguments  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402


class Function(BaseModel):
    """Fields as SGLang has them, by which Miles itself spells tools; the package brings stand-ins in another order."""

    description: str | None = None
    name: str
    parameters: object | None = None
    strict: bool = False


class Tool(BaseModel):
    type: str = "function"
    function: Function


def extract_tool_dicts(tools):
    return [Tool.model_validate(tool).model_dump() for tool in tools] if tools else None


template_jinja.extract_tool_dicts = extract_tool_dicts
deepseek_v32.Tool = Tool
deepseek_v4.Tool = Tool

encoders = {"deepseekv32": deepseek_v32, "deepseekv4": deepseek_v4}
word_names = {"deepseekv32": "TOOLS_SYSTEM_TEMPLATE", "deepseekv4": "TOOLS_TEMPLATE"}
templates = {}
vocabularies = {}


def render(job):
    tools = json.loads(job["tools"]) or None
    if isinstance(job["variables"], str):
        job["variables"] = json.loads(job["variables"])
    if job["encoder"] is not None:
        encoder = encoders[job["encoder"]]
        if job["words"] is not None:
            setattr(encoder, word_names[job["encoder"]], job["words"])
        messages = normalize_tool_arguments(job["messages"], "json")
        return encoder.render_messages(
            messages, tools=extract_tool_dicts(tools), **job["variables"]
        )
    path = job["template"]
    if path not in templates:
        with open(path, encoding="utf-8", newline="") as file:
            templates[path] = file.read()
    return template_jinja.apply_chat_template_from_str(
        templates[path],
        job["messages"],
        add_generation_prompt=job["opensTurn"],
        tools=tools,
        **job["variables"],
    )


def ids_of(path, text):
    if path is None:
        return None
    if path not in vocabularies:
        vocabularies[path] = Tokenizer.from_file(path)
    return vocabularies[path].encode(text, add_special_tokens=False).ids


def answer(job):
    try:
        text = render(job)
        return {"text": text, "ids": ids_of(job["vocabulary"], text), "error": None}
    except Exception as error:  # what a package refuses is an answer too
        return {"text": None, "ids": None, "error": f"{type(error).__name__}: {error}"}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
