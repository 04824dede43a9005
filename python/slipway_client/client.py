"""Rollouts one by one, and the door to collections."""

import json
import os
import time
import uuid
from urllib.parse import quote

from .callbacks import CallbackListener
from .collection import Collection
from .http import Connection

DEFAULT_URL = "http://127.0.0.1:8000"
LOOK_SECONDS = 2


class Client:
    """`url` before SLIPWAY_URL before this machine; `key` before SLIPWAY_KEY. `listen` and `public_url`: where callbacks of single rollouts come in. `attempts`: of a request, over 12 s by default,
    while the server does not answer or has no room."""

    def __init__(self, url=None, key=None, listen=("127.0.0.1", 0), public_url=None, attempts=6):
        named = url or os.environ.get("SLIPWAY_URL") or DEFAULT_URL
        self._http = Connection(named, key or os.environ.get("SLIPWAY_KEY") or None, attempts)
        self._listen = (*listen, public_url)
        self._listener = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def submit(self, messages, *, id=None, label=None, metadata=None, model_url="", model_key=None, train=True, graded=True, **fields):
        """Answers the id. `train`: samples are made of it; an object says how. `fields` stand in the request as they are: `agent_timeout_sec`, `extra_fields`."""
        rollout_id = id or f"py-{uuid.uuid4()}"
        completion, grader = self._callbacks().urls(rollout_id)
        body = {
            **fields,
            "rollout_id": rollout_id,
            "initial_messages": messages,
            "label": label,
            "metadata": {**(metadata or {}), **({} if train is False else {"slipway_train": train})},
            "chat_completions_url": model_url,
            "llm_api_key": model_key,
            "controller_api_key": self._callbacks().key,
            "completion_callback_url": completion,
            "grader_callback_url": grader if graded else None,
        }
        self._http.text("POST", "/rollout", body)
        return rollout_id

    def rollout(self, rollout_id):
        """What the server knows of it."""
        return self._http.ask("GET", f"/api/v1/rollouts/{quote(rollout_id, safe='')}")

    def wait(self, rollout_id, timeout=None):
        """The rollout when it has ended; TimeoutError after so many seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self.rollout(rollout_id)
            if found["ended_at"] is not None:
                self._callbacks().forget(rollout_id)
                return found
            left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"{rollout_id} has not ended within {timeout} s")
            self._callbacks().wait(rollout_id, left)

    def cancel(self, *rollout_ids):
        """A receipt for each."""
        return self._http.ask("POST", "/api/v1/rollouts/cancel", {"ids": list(rollout_ids)})["receipts"]

    def samples(self, rollout_id):
        """The lines of its samples (docs/sessions.md). ServerError with SAMPLES_UNAVAILABLE where there are none."""
        text = self._http.text("GET", f"/api/v1/rollouts/{quote(rollout_id, safe='')}/samples")
        return [json.loads(line) for line in text.splitlines() if line]

    def collect(self, rows=None, *, file=None, dataset=None, **wanted):
        """A new collection. `rows` or the name of a `file` of the server's; `wanted` as in docs/server-api.md: batches, ahead_groups, position, model, engines, rollouts, collector."""
        source = {**(dataset or {}), **({} if rows is None else {"rows": list(rows)}), **({} if file is None else {"file": file})}
        # Not sent again when its answer is lost: there would be two.
        connection, answer = self._http.open("POST", "/api/v1/collections", {**wanted, "dataset": source}, 60)
        try:
            return Collection(self._http, json.loads(answer.read()))
        finally:
            connection.close()

    def collection(self, collection_id):
        """One that there is."""
        return Collection(self._http, self._http.ask("GET", f"/api/v1/collections/{quote(collection_id, safe='')}"))

    def collections(self):
        return [Collection(self._http, each) for each in self._http.ask("GET", "/api/v1/collections")["collections"]]

    def _callbacks(self):
        if self._listener is None:
            self._listener = CallbackListener(*self._listen)
        return self._listener
