"""What went wrong in a call of the SDK, in words that its caller can act on.

The SDK is in early access and documents no exceptions, so a failure is told by the status that it carries, then by the kinds of the
standard library, and only then by the status that its message names.
"""

import asyncio
import re


class Gone(Exception):
    """Nothing carries the name."""


class Unsupported(Exception):
    """The SDK has no such call, or does not take what it was given."""


_BY_STATUS = {401: "auth", 403: "auth", 404: "not-found", 409: "exists", 429: "rate-limited"}
_NAMED_STATUS = re.compile(
    r"\b(4\d\d|5\d\d) (?:Client Error|Server Error|Bad Request|Unauthorized|Forbidden|Not Found|Conflict|"
    r"Too Many Requests|Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)",
    re.IGNORECASE,
)


def describe(error):
    status = status_of(error)
    return {
        "kind": kind_of(error, status),
        "message": f"{type(error).__name__}: {error}"[:4000],
        "status": status,
        "retry_after": retry_after(error),
    }


def kind_of(error, status):
    if isinstance(error, Gone):
        return "not-found"
    if isinstance(error, (Unsupported, TypeError, NotImplementedError)):
        return "unsupported"
    if status is not None:
        return _BY_STATUS.get(status, "unavailable" if status >= 500 or status == 408 else "refused")
    if isinstance(error, (TimeoutError, asyncio.TimeoutError, ConnectionError)):
        return "unavailable"
    if isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError)):
        return "refused"
    if isinstance(error, ValueError):
        return "refused"
    # Whoever speaks HTTP in Python has its connection errors derive from OSError, or call them so.
    if isinstance(error, OSError) or "Connect" in type(error).__name__ or "Timeout" in type(error).__name__:
        return "unavailable"
    return "failed"


def status_of(error):
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                return value
    named = _NAMED_STATUS.search(str(error))
    return None if named is None else int(named.group(1))


def retry_after(error):
    """Seconds; None where it does not say."""
    for holder in (error, getattr(error, "response", None)):
        headers = getattr(holder, "headers", None)
        value = getattr(holder, "retry_after", None)
        if value is None and headers is not None and hasattr(headers, "get"):
            value = headers.get("Retry-After")
        try:
            if value is not None:
                return max(0.0, float(value))
        except (TypeError, ValueError):
            continue
    return None
