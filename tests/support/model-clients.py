"""The vendors' clients, told what to ask by lines of JSON: every answer is one line, with what their own classes made of it."""

import json
import sys

sys.path.insert(0, sys.argv[1])

import anthropic  # noqa: E402
import openai  # noqa: E402


def main() -> None:
    print(json.dumps({"openai": openai.__version__, "anthropic": anthropic.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def answer(asked: dict) -> dict:
    events: list = []
    answered = {"result": None, "events": events, "error": None, "last": None}
    try:
        answered["result"] = plain(ask(asked, events))
    except Exception as error:  # What a package raises that is none of its own errors is for the test to judge.
        answered["error"] = {
            "type": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "code": getattr(error, "code", None),
            "message": str(error),
        }
    if asked["dialect"] == "responses" and events:
        answered["last"] = plain(events[-1])
    answered["events"] = [event.type for event in events]
    return answered


def ask(asked: dict, events: list):
    package, params = asked["dialect"], asked["params"]
    options = {"api_key": asked["key"], "max_retries": asked.get("retries", 0), "timeout": 60}
    if package == "messages":
        client = anthropic.Anthropic(base_url=asked["url"], **options)
        if not asked["stream"]:
            return client.messages.create(**params)
        with client.messages.stream(**params) as stream:
            for event in stream:
                events.append(event)
            return stream.get_final_message()
    client = openai.OpenAI(base_url=f"{asked['url']}/v1", **options)
    if package == "responses":
        if not asked["stream"]:
            return client.responses.create(**params)
        with client.responses.stream(**params) as stream:
            for event in stream:
                events.append(event)
            return stream.get_final_response()
    if not asked["stream"]:
        return client.chat.completions.create(**params)
    with client.chat.completions.stream(**params) as stream:
        for event in stream:
            events.append(event)
        return stream.get_final_completion()


def plain(value):
    return value.model_dump(mode="json", warnings=False)


main()
