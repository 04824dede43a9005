"""A client that behaves on the wire as the stock Harbor plugin of a Miles trainer does, with the standard library only.

Reads one JSON object per line: {"op": "run", "name", "base_url", "request_kwargs", "metadata"} starts a trial beside the others, {"op": "abort", "args"}
flushes as the plugin's hook does, {"op": "hang up", "name"} closes the connection of a trial. Prints one JSON object per answer. The end of the input is
waited for with all trials.
"""

import http.client
import json
import os
import socket
import sys
import threading
from urllib.parse import urlsplit

print_lock = threading.Lock()
connections = {}


def say(**fields):
    with print_lock:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()


def post(url, body, headers=None, timeout=None, name=None):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    connection.connect()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if name is not None:
        connections[name] = connection
    try:
        connection.request(
            "POST",
            parts.path,
            json.dumps(body),
            {"content-type": "application/json", **(headers or {})},
        )
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def run(base_url, request_kwargs, metadata, name):
    """None where anything went wrong, as the plugin has it."""
    url = os.environ.get("AGENT_SERVER_URL") or os.environ.get("SWE_AGENT_URL")
    url = url or "http://localhost:11000"
    model = os.environ.get("AGENT_MODEL_NAME") or os.environ.get("SWE_AGENT_MODEL_NAME")
    body = dict(metadata)
    body["base_url"] = f"{base_url}/v1"
    body["model"] = f"openai/{model or 'model'}"
    body["sampling_params"] = request_kwargs
    if metadata.get("max_seq_len") is not None:
        body["max_seq_len"] = int(metadata["max_seq_len"])
    limit = float(os.environ.get("AGENT_TRIAL_TIMEOUT") or 7200)
    try:
        # The address is used as it stands, a slash at its end included.
        status, answer = post(f"{url}/run", body, timeout=limit, name=name)
        if status // 100 != 2:
            return {"status": status, "result": None, "answer": answer}
    except Exception as error:  # whatever it was, there is no result
        return {"status": None, "result": None, "answer": repr(error)}
    return {
        "status": status,
        "keys": sorted(answer),
        "result": {
            "reward": answer.get("reward", 0.0),
            "exit_status": answer.get("exit_status", ""),
            "eval_report": answer.get("eval_report", {}),
            "agent_metrics": answer.get("agent_metrics", {}),
        },
    }


def instance_ids(args):
    """The map of ports, a list, or the single id."""
    found = args.get("session_server_instance_ids") or args.get("session_server_instance_id")
    if isinstance(found, dict):
        found = list(found.values())
    return [found] if isinstance(found, str) else list(found or [])


def abort(args):
    url = os.environ.get("AGENT_SERVER_URL") or os.environ.get("SWE_AGENT_URL") or ""
    secret = os.environ.get("HARBOR_ADMIN_SECRET") or ""
    ids = instance_ids(args)
    if not url or not ids:
        say(abort=[])
        return
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    answers = []
    for one in ids:
        for attempt in range(3):
            try:
                answers.append(
                    post(url.rstrip("/") + "/flush", {"session_server_instance_id": one}, headers)
                )
                break
            except OSError as error:
                if attempt == 2:
                    answers.append((None, repr(error)))
    say(abort=answers)


def serve():
    threads = []
    for line in sys.stdin:
        order = json.loads(line)
        if order["op"] == "abort":
            abort(order["args"])
        elif order["op"] == "hang up":
            connections[order["name"]].sock.shutdown(socket.SHUT_RDWR)
        else:
            given = {key: order[key] for key in ("base_url", "request_kwargs", "metadata", "name")}
            work = lambda given=given: say(name=given["name"], **run(**given))
            threads.append(threading.Thread(target=work))
            threads[-1].start()
    for thread in threads:
        thread.join()


serve()
