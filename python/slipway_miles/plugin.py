"""`run` posts one trial to the agent server, `abort` ends the trials of this trainer's session servers and of no other."""

import asyncio
import logging

from . import settings
from .http import post

logger = logging.getLogger("slipway_miles")

FLUSH_ATTEMPTS = 3
FLUSH_PAUSE_SEC = 0.2
# Nobody else puts a limit to the hook, and the trainer's batch waits for it.
FLUSH_SEC = 30.0


class Plugin:
    def __init__(self, url=None, secret=None, model=None, trial_timeout=None):
        """Each stands before the variable of its kind."""
        self._url = url
        self._secret = secret
        self._model = model
        self._trial_timeout = trial_timeout

    async def run(self, base_url, prompt=None, request_kwargs=None, metadata=None, **_):
        """The verdict of one trial; None where anything went wrong, a cancellation too: the trainer then collects what the session has."""
        where = settings.trimmed((metadata or {}).get("instance_id")) or "a trial"
        try:
            url = settings.server_url(self._url) or settings.LOCAL_URL
            body = self._body(base_url, request_kwargs, metadata)
            limit = settings.trial_seconds(self._trial_timeout)
            answer = await asyncio.wait_for(post(f"{url}/run", body), limit)
            return result_of(answer)
        except asyncio.CancelledError:
            logger.warning("%s: cancelled", where)
        except (TimeoutError, asyncio.TimeoutError):
            logger.warning("%s: no result in time", where)
        except Exception as error:
            logger.error("%s: no result: %s", where, words_of(error))
        return None

    async def abort(self, args):
        """Called once when a batch is complete and its engines were told to stop. Nothing is raised."""
        try:
            url = settings.server_url(self._url)
            ids = settings.instance_ids(args)
            missing = []
            if url is None:
                missing.append("the address of the agent server (url, AGENT_SERVER_URL)")
            if not ids:
                missing.append("the id of the session server (session_server_instance_id)")
            if missing:
                logger.warning("trials are not flushed: missing %s", " and ".join(missing))
                return
            secret = settings.admin_secret(self._secret)
        except Exception as error:
            logger.warning("trials are not flushed: %s", words_of(error))
            return
        await asyncio.gather(*(flush(f"{url}/flush", one, secret) for one in ids))

    def _body(self, base_url, request_kwargs, metadata):
        body = dict(metadata or {})
        session = settings.seen_from_outside(base_url.strip(settings.BLANKS).rstrip("/"))
        body["base_url"] = f"{session}/v1"
        body["model"] = f"openai/{settings.model_name(self._model)}"
        body["sampling_params"] = dict(request_kwargs or {})
        for key, value_of in OPTIONAL.items():
            given = body.pop(key, None)
            given = given.strip(settings.BLANKS) if isinstance(given, str) else given
            if given not in (None, ""):
                body[key] = value_of(given)
        return body


OPTIONAL = {
    "max_seq_len": int,
    "session_server_id": lambda given: settings.seen_from_outside(str(given)),
    "session_server_instance_id": str,
}


async def flush(url, instance_id, secret):
    for attempt in range(1, FLUSH_ATTEMPTS + 1):
        try:
            answer = await asyncio.wait_for(
                post(url, {"session_server_instance_id": instance_id}, secret), FLUSH_SEC
            )
            count = answer.get("cancelled") if isinstance(answer, dict) else None
            logger.info("flushed %s: %s trials", instance_id, count)
            return
        except Exception as error:
            if attempt == FLUSH_ATTEMPTS or getattr(error, "final", False):
                logger.warning("trials of %s are not flushed: %s", instance_id, words_of(error))
                return
            await asyncio.sleep(FLUSH_PAUSE_SEC * attempt)


def result_of(answer):
    if not isinstance(answer, dict):
        raise ValueError("the answer is no object")
    defaults = {"reward": 0.0, "exit_status": "", "eval_report": {}, "agent_metrics": {}}
    return {
        key: default if answer.get(key) is None else answer[key]
        for key, default in defaults.items()
    }


def words_of(error):
    return str(error) or type(error).__name__
