"""Between chat messages and ATIF, as far as a sample needs it."""

import json


# What messages and documents of users are made of is their own affair: any part may be of another shape than it has as a rule.
ODD_SHAPE = (AttributeError, KeyError, TypeError)


def trajectory_of(messages, session_id, agent_name):
    """None = there is nothing to tell, or something that is no chat message."""
    try:
        steps = steps_of(messages)
    except ODD_SHAPE:
        return None
    if not steps:
        return None
    return {
        "schema_version": "ATIF-v1.5",
        "session_id": session_id,
        "agent": {"name": agent_name, "version": "unknown"},
        "steps": steps,
    }


def steps_of(messages):
    """None = one is no chat message."""
    steps = []
    calls = {}
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            owner = calls.get(message.get("tool_call_id")) or (steps[-1] if steps else None)
            if owner is None or owner["source"] != "agent":
                return None
            result = {"content": content}
            if message.get("tool_call_id") in calls:
                result["source_call_id"] = message["tool_call_id"]
            owner.setdefault("observation", {"results": []})["results"].append(result)
            continue
        if role not in ("system", "developer", "user", "assistant"):
            return None
        step = {
            "step_id": len(steps) + 1,
            "source": {"assistant": "agent", "user": "user"}.get(role, "system"),
            "message": content if content is not None else "",
        }
        if role == "assistant":
            if isinstance(message.get("reasoning_content"), str):
                step["reasoning_content"] = message["reasoning_content"]
            tool_calls = [tool_call_of(call) for call in message.get("tool_calls") or []]
            if tool_calls:
                step["tool_calls"] = tool_calls
                calls.update({call["tool_call_id"]: step for call in tool_calls})
        steps.append(step)
    return steps


def tool_call_of(call):
    function = call.get("function") or {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
        json.dumps(arguments, allow_nan=False)  # a model may write NaN or 1e999, which Python reads
    except (TypeError, ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        arguments = {"arguments": function.get("arguments")}
    return {
        "tool_call_id": str(call.get("id") or ""),
        "function_name": str(function.get("name") or ""),
        "arguments": arguments,
    }


def messages_of(trajectory):
    """Chat messages of a document; tool turns, observations and reasoning are kept. None = it is no trajectory."""
    steps = trajectory.get("steps")
    if not isinstance(steps, list) or not steps:
        return None
    try:
        return chat_of(steps)
    except ODD_SHAPE:
        return None


def chat_of(steps):
    messages = []
    for step in steps:
        source = step.get("source")
        if source != "agent":
            role = "user" if source == "user" else "system"
            messages.append({"role": role, "content": step.get("message", "")})
            continue
        message = {"role": "assistant", "content": step.get("message", "")}
        if step.get("reasoning_content") is not None:
            message["reasoning_content"] = step["reasoning_content"]
        calls = step.get("tool_calls") or []
        if calls:
            message["tool_calls"] = [
                {
                    "id": call.get("tool_call_id"),
                    "type": "function",
                    "function": {
                        "name": call.get("function_name"),
                        "arguments": json.dumps(call.get("arguments"), ensure_ascii=False),
                    },
                }
                for call in calls
            ]
        messages.append(message)
        for index, result in enumerate((step.get("observation") or {}).get("results") or []):
            owner = result.get("source_call_id") or (calls[index].get("tool_call_id") if index < len(calls) else None)
            content = result.get("content")
            if owner is None:
                messages.append({"role": "user", "content": content})
            else:
                messages.append({"role": "tool", "tool_call_id": owner, "content": content})
    return messages
