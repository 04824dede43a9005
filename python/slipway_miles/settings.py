"""Where the agent server is and which trials are ours. Texts are trimmed, line breaks of files and shells with them; one of white space alone is none. What is left
with white space or control characters inside is a mistake that is named, never sent."""

import math
import os
import re
from urllib.parse import urlsplit

# As JavaScript trims, so that both clients of a trainer read a file alike.
BLANKS = " \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
LOCAL_URL = "http://localhost:11000"
TRIAL_SEC = 7200.0


class SettingError(ValueError):
    """A setting that cannot be used; the text says which one and what to do."""


def trimmed(given):
    """None for what is no text, and for a text of white space."""
    return (given.strip(BLANKS) or None) if isinstance(given, str) else None


def first(option, *variables):
    """The option before the variables, which are read anew at every call."""
    for given in (option, *map(os.environ.get, variables)):
        text = trimmed(given)
        if text is not None:
            return text
    return None


def server_url(option=None):
    """None where none is named. Without slashes at its end."""
    given = first(option, "AGENT_SERVER_URL", "SWE_AGENT_URL")
    if given is None:
        return None
    try:
        parts = urlsplit(given)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in parts.netloc or re.search(r"[\s\x00-\x20\x7f-\x9f?#]", given):
        raise SettingError(
            "the address of the agent server is none: set url, or AGENT_SERVER_URL, to one line like http://host:8000"
        )
    return given.rstrip("/")


def admin_secret(option=None):
    """None where none is set."""
    given = first(option, "HARBOR_ADMIN_SECRET")
    if given is None or re.fullmatch(r"[\x21-\x7e\x80-\xff]+", given):
        return given
    raise SettingError(
        "the admin secret has characters of no header: set secret, or HARBOR_ADMIN_SECRET, to one line without white space"
    )


def model_name(option=None):
    return first(option, "AGENT_MODEL_NAME", "SWE_AGENT_MODEL_NAME") or "model"


def trial_seconds(option=None):
    """None: without a limit."""
    given = os.environ.get("AGENT_TRIAL_TIMEOUT") if option is None else option
    if given is None or (isinstance(given, str) and trimmed(given) is None):
        return TRIAL_SEC
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = math.nan
    if seconds > 0:
        return None if math.isinf(seconds) else seconds
    raise SettingError(
        "the time limit of a trial is no number above 0: set trial_timeout, or AGENT_TRIAL_TIMEOUT, to seconds"
    )


def instance_ids(args):
    """Of one session server or several: a text, a list of texts or of objects with `instance_id`, or a map of ports to ids. Each once."""
    found = ids_of(getattr(args, "session_server_instance_ids", None))
    found = found or ids_of(getattr(args, "session_server_instance_id", None))
    return list(dict.fromkeys(found))


def ids_of(given):
    if isinstance(given, dict):
        return ids_of(given["instance_id"] if "instance_id" in given else list(given.values()))
    if isinstance(given, (list, tuple, set, frozenset)):
        return [one for each in given for one in ids_of(each)]
    text = trimmed(given)
    return [] if text is None else [text]


def seen_from_outside(address):
    """The address of a session server, of a URL or `host:port`, as sandboxes reach it: MILES_ROUTER_EXTERNAL_HOST in place of its host."""
    host = first(None, "MILES_ROUTER_EXTERNAL_HOST")
    if host is None:
        return address
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    whole = re.fullmatch(r"([a-z]+://)?(?:\[[^\]]*\]|[^:/?#\[\]]+)((?::\d+)?(?:[/?#].*)?)", address, re.S | re.I)
    return address if whole is None else f"{whole[1] or ''}{host}{whole[2]}"
