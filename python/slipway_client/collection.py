"""Groups of a collection as they are handed over. A connection that is lost is made anew behind the last line that came: nothing is lost, nothing comes twice."""

import http.client
import json
import time
from dataclasses import dataclass
from urllib.parse import quote

from .http import SILENT_SECONDS, ServerError

GONE_SECONDS = 300
PAUSE_SECONDS = (0.1, 0.5, 2)


@dataclass
class Batch:
    groups: list
    # What it cost, and the receipt of its abort.
    line: dict


class Collection:
    def __init__(self, connection, document):
        self._http = connection
        self.id = document["id"]
        # As the server last told it.
        self.document = document

    def __iter__(self):
        """Groups, one by one; the caller acknowledges."""
        return (line for line in self.lines() if line["type"] == "group")

    def batches(self):
        """Whole batches. One is acknowledged when the next is asked for: what happens in between, such as new weights, is over before the server begins another."""
        groups = []
        for line in self.lines():
            if line["type"] == "group":
                groups.append(line)
            elif line["type"] == "batch":
                yield Batch(groups, line)
                groups = []
                self.ack(line)
        if self.document["state"] == "failed":
            error = self.document["error"]
            raise ServerError(f"{self.id} failed: {error['detail']}", code=error.get("code"))

    def lines(self, after=None):
        """Every line behind a cursor; without one from the oldest that is not acknowledged."""
        cursor = self.look()["acknowledged"] if after is None else after
        lost, pauses = None, 0
        while True:
            try:
                for line in self._stream(cursor):
                    lost, pauses = None, 0
                    if line["type"] == "idle":
                        continue
                    cursor = line["cursor"]
                    if line["type"] == "end":
                        self.look()
                    yield line
                    if line["type"] == "end":
                        return
            except ServerError as error:
                if error.status not in (None, 429, 503):
                    raise
                failure = error
            except (OSError, http.client.HTTPException) as error:
                failure = error
            else:
                # The stream of one that is over ends behind its last line, which may be acknowledged.
                if self.look()["state"] in ("ended", "stopped", "failed") and self.document["cursor"] <= cursor:
                    return
                failure = ConnectionError("the stream has ended")
            lost = lost or time.monotonic()
            if time.monotonic() - lost > GONE_SECONDS:
                raise ServerError(f"{self.id} cannot be reached: {failure!r}") from failure
            time.sleep(PAUSE_SECONDS[min(pauses, len(PAUSE_SECONDS) - 1)])
            pauses += 1

    def ack(self, line):
        """The caller has everything up to this line, or this cursor."""
        return self._change("ack", {"through": line if isinstance(line, int) else line["cursor"]})

    def weight_version(self, version):
        """Of what is started from here on."""
        return self._change("weight-version", {"version": version})

    def pause(self):
        return self._change("pause", {})

    def resume(self):
        return self._change("resume", {})

    def stop(self):
        """Ends what runs; the receipt of that, None where nothing ran."""
        return self._change("stop", {})["receipt"]

    def look(self):
        self.document = self._http.ask("GET", self._path(""))
        return self.document

    def _change(self, what, body):
        self.document = self._http.ask("POST", self._path(f"/{what}"), body)
        return self.document

    def _stream(self, cursor):
        connection, answer = self._http.open("GET", self._path(f"/groups?after={cursor}"), None, SILENT_SECONDS)
        try:
            while text := answer.readline():
                # A line without its end was cut; it comes again.
                if text.endswith(b"\n"):
                    yield json.loads(text)
        finally:
            connection.close()

    def _path(self, below):
        return f"/api/v1/collections/{quote(self.id, safe='')}{below}"
