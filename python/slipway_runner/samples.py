"""Between the user's objects and plain samples: what cannot be a sample is refused here, in the words of what is wrong.

A plain sample is JSON: messages, label, reward, isRemoved, metrics, extraFields, and trajectoryMessages where they are not the messages.
"""

import json
import math
import numbers
from collections.abc import Mapping, Sequence

from .failures import AnswerError

# Reading a longer text would hold up the server.
MAX_SAMPLE_LENGTH = 16 * 1024 * 1024

OUTPUT_KEYS = {"messages", "metrics", "info"}

NOTHING = object()


class Sample:
    """What a grader without an SDK works on. A reward is checked when it is assigned, so that the error stands where the mistake is."""

    def __init__(self, plain):
        self.messages = plain["messages"]
        self.label = plain["label"]
        self.remove_sample = plain["isRemoved"]
        self.metrics = plain["metrics"]
        self.extra_fields = plain["extraFields"]
        self._reward = plain["reward"]

    @property
    def reward(self):
        return self._reward

    @reward.setter
    def reward(self, value):
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"a reward is a number, not {type(value).__name__}")
            value = float(value)
            if not math.isfinite(value):
                raise ValueError(f"a reward is finite, not {value}")
        self._reward = value


def output_sample(answer):
    """Of a list of messages, or a dict with messages, metrics and info; None = there is none."""
    if isinstance(answer, list):
        answer = {"messages": answer}
    if not isinstance(answer, dict):
        raise AnswerError(
            f"the workflow answered no sample: {type(answer).__name__} is neither a list of messages nor a dict"
        )
    unknown = sorted(str(key) for key in answer if key not in OUTPUT_KEYS)
    if unknown:
        raise AnswerError(f"the workflow answered no sample: unknown keys {', '.join(unknown)}")
    metrics = answer.get("metrics") or {}
    if not isinstance(metrics, dict):
        raise AnswerError("the workflow answered no sample: metrics are no dict")
    for name, value in metrics.items():
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise AnswerError(f"the workflow answered no sample: metrics.{name} is no finite number")
    if answer.get("messages") is None:
        return None
    return plain_sample(messages=answer["messages"], metrics=metrics)


def plain_sample(messages, metrics, **rest):
    return {
        "messages": messages,
        "label": rest.get("label"),
        "reward": rest.get("reward"),
        "isRemoved": rest.get("is_removed", False),
        "metrics": metrics,
        "extraFields": rest.get("extra_fields", {}),
    }


def require_reward(sample):
    if sample["reward"] is None and not sample["isRemoved"]:
        raise AnswerError("the grader set no reward")


def text_of_graded(sample):
    """An earned reward outlives what cannot be said beside it."""
    try:
        return text_of(sample)
    except AnswerError:
        return text_of({**sample, "messages": [], "metrics": {}, "extraFields": {}, "trajectoryMessages": None})


def text_of(sample):
    """JSON of a sample. Raises AnswerError."""
    plain = {
        **sample,
        "messages": fit_messages(sample["messages"]),
        "metrics": loose(sample["metrics"]),
        "extraFields": loose(sample["extraFields"]),
    }
    if plain.get("trajectoryMessages") is not None:
        fit_trajectory(plain)
    try:
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        raise AnswerError(f"the sample is not JSON: {error}") from error
    if len(text) <= MAX_SAMPLE_LENGTH:
        return text
    raise AnswerError(f"the sample is longer than {MAX_SAMPLE_LENGTH // 1024 // 1024} MiB")


def fit_trajectory(plain):
    """Absent where it says the same; none where it is no JSON."""
    try:
        plain["trajectoryMessages"] = fit_messages(plain["trajectoryMessages"])
    except AnswerError:
        plain["trajectoryMessages"] = None
    if plain["trajectoryMessages"] == plain["messages"]:
        del plain["trajectoryMessages"]


def fit_messages(messages):
    if isinstance(messages, (str, bytes)) or not isinstance(messages, Sequence):
        raise AnswerError("the messages of the sample are no list")
    fitted = []
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise AnswerError(f"messages.{index} of the sample is no dict")
        try:
            fitted.append(fit(message, is_strict=True))
        except RecursionError:
            raise AnswerError(f"messages.{index} of the sample is not JSON: it holds itself") from None
        except TypeError as error:
            raise AnswerError(f"messages.{index} of the sample is not JSON: {error}") from None
    return fitted


def loose(mapping):
    """What JSON has no word for is left out."""
    try:
        return fit(mapping, is_strict=False)
    except (RecursionError, TypeError) as error:
        raise AnswerError(f"the sample is not JSON: {error}") from None


def fit(value, is_strict):
    """Builtin values only. Numbers that are not finite are left out, or null in a list; other things that are no JSON too, unless that is an error."""
    if value is None or isinstance(value, (bool, str)):
        return value if value is None or isinstance(value, bool) else str(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else NOTHING
    if isinstance(value, Mapping):
        pairs = ((key_of(key), fit(each, is_strict)) for key, each in value.items())
        return {key: each for key, each in pairs if each is not NOTHING}
    if isinstance(value, (list, tuple)):
        items = (fit(each, is_strict) for each in value)
        return [None if each is NOTHING else each for each in items]
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return fit(dump(mode="json"), is_strict)
    if is_strict:
        raise TypeError(f"{type(value).__name__} has no JSON")
    return NOTHING


def key_of(key):
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)
