"""Requests of JSON to the server's control listener."""

import http.client
import json
import ssl
import time
from urllib.parse import urlsplit

ANSWER_SECONDS = 60
# A stream that has nothing to say says so more often than this.
SILENT_SECONDS = 60
PAUSE_SECONDS = 0.2


class ServerError(Exception):
    """The server refuses. `code` is one of docs/errors.md, None where the protocol itself refuses; `status` is None when the server did not answer."""

    def __init__(self, message, status=None, code=None):
        super().__init__(message)
        self.status = status
        self.code = code


class Connection:
    def __init__(self, url, key, attempts):
        self._attempts = attempts
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"{url!r} is not an http(s) address")
        self._parts = parts
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def ask(self, method, path, body=None):
        """The JSON of the answer."""
        return json.loads(self.text(method, path, body))

    def text(self, method, path, body=None):
        """Every request may come twice, so that one is sent again whose answer was lost, or that came while the server was full or stopping."""
        for attempt in range(1, self._attempts + 1):
            try:
                connection, answer = self.open(method, path, body, ANSWER_SECONDS)
                try:
                    return answer.read().decode()
                finally:
                    connection.close()
            except ServerError as error:
                if error.status not in (429, 503) or attempt == self._attempts:
                    raise
            except (OSError, http.client.HTTPException) as error:
                if attempt == self._attempts:
                    raise ServerError(f"{method} {path}: {error!r}") from error
            time.sleep(PAUSE_SECONDS * 2**attempt)
        raise ValueError(f"{self._attempts} attempts are none")

    def open(self, method, path, body, timeout):
        """An answer to read, and its connection to close."""
        parts = self._parts
        if parts.scheme == "https":
            secure = ssl.create_default_context()
            connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=secure)
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        try:
            headers = dict(self._headers)
            payload = None
            if body is not None:
                payload = json.dumps(body, allow_nan=False).encode()
                headers["Content-Type"] = "application/json"
            connection.request(method, parts.path.rstrip("/") + path, payload, headers)
            answer = connection.getresponse()
            if not 200 <= answer.status < 300:
                raise refusal(f"{method} {path}", answer)
            return connection, answer
        except BaseException:
            connection.close()
            raise


def refusal(asked, answer):
    text = answer.read().decode("utf-8", "replace")
    try:
        document = json.loads(text)
        detail, code = document["detail"], document.get("code")
    except (ValueError, KeyError, TypeError, AttributeError):
        detail, code = text[:200], None
    return ServerError(f"{asked} answered {answer.status}: {detail}", answer.status, code)
