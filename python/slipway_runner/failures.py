"""What was thrown, as plain values."""

import asyncio
import traceback

MAX_MESSAGE_LENGTH = 4_000


class AnswerError(Exception):
    """The answer of the user's code is not what it may be."""


def failure_of(error):
    """Errors of time are `timeout`, those of types, values and assertions `validation_error`, all others `agent_error`."""
    return {
        "kind": "answer" if isinstance(error, AnswerError) else "thrown",
        "category": category_of(error),
        "type": type(error).__name__,
        "message": cut(words_of(error)),
    }


def category_of(error):
    if isinstance(error, AnswerError):
        return "validation_error"
    # One class since Python 3.11.
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return "timeout"
    if isinstance(error, (ValueError, TypeError, AssertionError)):
        return "validation_error"
    return "agent_error"


def words_of(error):
    if isinstance(error, MemoryError):
        return "ran out of memory"
    try:
        return str(error) or type(error).__name__
    except Exception:
        return f"an error that cannot be described ({type(error).__name__})"


def load_failure(error):
    """Of code that cannot be loaded: Python's message, and the innermost line of a file that it names."""
    lines = traceback.format_exception_only(type(error), error)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and "slipway_runner" not in frame.filename
    ]
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return cut("".join(lines).strip() + where)


def cut(text):
    plain = text.encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= MAX_MESSAGE_LENGTH else plain[:MAX_MESSAGE_LENGTH] + "…"
