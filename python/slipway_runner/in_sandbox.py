"""python -u …/slipway_runner/start.py in-sandbox workflow|grader

Carries out a user's workflow, later the grader, inside the sandbox of their trial. Nobody is there to talk to: what goes in and out are files. The
package comes as a read-only layer, the interpreter from the image.

    /logs/agent/container_input.json ...... of the workflow, without the label; /tests/container_input.json has the label, and wins
    /logs/agent/container_result.json ..... {status, output, sample, err_message, ...}
    /logs/agent/trajectory.json ........... the sample's messages as ATIF, unless the workflow declined
    /logs/verifier/reward.json ............ {"reward": NUMBER}, only where there is one
    /logs/verifier/graded_sample.json ..... what the grader left of the sample, without its messages, or the error that it ended with
    /logs/verifier/.osmosis-artifacts/ .... what the grader wrote or changed in /logs/artifacts
"""

import asyncio
import json
import os
import shutil
import stat
import sys
import traceback

from .failures import cut, failure_of
from .trajectory import messages_of, trajectory_of
from .workflow import WorkflowRole

ROOT = os.environ.get("SLIPWAY_SANDBOX_ROOT", "")
AGENT_DIR = ROOT + "/logs/agent"
VERIFIER_DIR = ROOT + "/logs/verifier"
ARTIFACTS_DIR = ROOT + "/logs/artifacts"
TESTS_DIR = ROOT + "/tests"
DELTA_DIR = VERIFIER_DIR + "/.osmosis-artifacts"
INPUT = "container_input.json"
MAX_READ_BYTES = 64 * 1024 * 1024


def run_workflow():
    """0 = there is a result that says success."""
    given = read_json(f"{AGENT_DIR}/{INPUT}")
    try:
        text = carry_out(given, "workflow", {"prompt": given["prompt"]})
    except BaseException as error:
        traceback.print_exc()
        write_json(f"{AGENT_DIR}/container_result.json", {**failed(error), "output": None, "sample": None})
        return 1
    sample = None if text is None else json.loads(text)
    messages = None if sample is None else sample.get("trajectoryMessages", sample["messages"])
    if messages is not None:
        trajectory = trajectory_of(messages, given["rollout_id"], given["workflow"]["name"])
        if trajectory is not None:
            write_json(f"{AGENT_DIR}/trajectory.json", trajectory)
    write_json(
        f"{AGENT_DIR}/container_result.json",
        {
            "status": "success",
            "output": None if sample is None else {"messages": sample["messages"], "metrics": sample["metrics"]},
            "sample": None if sample is None else to_wire(sample),
            "err_message": None,
        },
    )
    return 0


def run_grader():
    """Without a sample nothing is graded, and no reward is written: a zero would say that it was."""
    given = read_json(f"{TESTS_DIR}/{INPUT}")
    model = read_json(f"{AGENT_DIR}/{INPUT}", {})
    given = {**{key: model.get(key) for key in ("chat_completions_url", "api_key")}, **given}
    sample = find_sample()
    if sample is None:
        print("there is no sample to grade", file=sys.stderr)
        return 0
    before = snapshot(ARTIFACTS_DIR)
    try:
        if sample["label"] is None:
            sample["label"] = given["label"]
        text = carry_out(given, "grader", {"sample": json.dumps(sample), "label": given["label"]})
    except BaseException as error:
        traceback.print_exc()
        write_json(f"{VERIFIER_DIR}/graded_sample.json", failed(error))
        return 1
    finally:
        stage_changes(before)
    graded = json.loads(text)
    wire = to_wire(graded)
    del wire["messages"], wire["trajectory_messages"]
    write_json(f"{VERIFIER_DIR}/graded_sample.json", {"status": "success", **wire})
    if graded["reward"] is not None:
        write_json(f"{VERIFIER_DIR}/reward.json", {"reward": graded["reward"]})
    return 0


def carry_out(given, part, order):
    role = WorkflowRole()
    settings = {"workflow": None, "workflowConfig": None, "grader": None, "graderConfig": None}
    settings[part] = {"file": None, **given[part]}
    settings[f"{part}Config"] = {"table": given[f"{part}_config"]}
    url, key = given.get("chat_completions_url"), given.get("api_key")
    os.makedirs(ARTIFACTS_DIR, exist_ok=True)

    async def work():
        await role.load(settings)
        return await role.carry_out(
            {
                **order,
                "kind": part,
                "rolloutId": given["rollout_id"],
                "metadata": given["metadata"],
                "model": {"baseUrl": url, "apiKey": key} if url else None,
                "artifactsDir": ARTIFACTS_DIR,
            },
            None,
        )

    return asyncio.run(work())


def failed(error):
    failure = failure_of(error)
    message = failure["message"]
    if isinstance(error, SystemExit):
        message = f"the code ended its process ({error.code})"
    return {
        "status": "failure",
        "err_message": cut(message),
        "err_category": failure["category"],
        "err_type": failure["type"],
    }


def find_sample():
    """A plain sample: the whole one, else what the workflow answered, else the messages of a trajectory."""
    result = read_json(f"{AGENT_DIR}/container_result.json", {})
    if isinstance(result.get("sample"), dict):
        return from_wire(result["sample"])
    if isinstance(result.get("output"), dict) and result["output"].get("messages") is not None:
        return from_wire(result["output"])
    names = sorted(os.listdir(AGENT_DIR)) if os.path.isdir(AGENT_DIR) else []
    for name in names:
        if "trajectory" not in name or not name.endswith(".json"):
            continue
        messages = messages_of(read_json(f"{AGENT_DIR}/{name}", {}))
        if messages is not None:
            return from_wire({"messages": messages})
    return None


def to_wire(plain):
    return {
        "messages": plain["messages"],
        "trajectory_messages": plain.get("trajectoryMessages", plain["messages"]),
        "label": plain["label"],
        "reward": plain["reward"],
        "remove_sample": plain["isRemoved"],
        "metrics": plain["metrics"],
        "extra_fields": plain["extraFields"],
    }


def from_wire(sample):
    messages = sample["messages"]
    plain = {
        "messages": messages,
        "label": sample.get("label"),
        "reward": sample.get("reward"),
        "isRemoved": bool(sample.get("remove_sample", False)),
        "metrics": sample.get("metrics") or {},
        "extraFields": sample.get("extra_fields") or {},
    }
    trajectory = sample.get("trajectory_messages", messages)
    return plain if trajectory == messages else {**plain, "trajectoryMessages": trajectory}


def snapshot(root):
    """Regular files by their path below `root`; links are not followed."""
    found = {}
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(folder, name))]
        for name in names:
            path = os.path.join(folder, name)
            state = os.lstat(path)
            if stat.S_ISREG(state.st_mode):
                found[os.path.relpath(path, root)] = (state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return found


def stage_changes(before):
    for path, state in snapshot(ARTIFACTS_DIR).items():
        if before.get(path) == state:
            continue
        target = os.path.join(DELTA_DIR, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(os.path.join(ARTIFACTS_DIR, path), target)


NOTHING = object()


def read_json(path, default=NOTHING):
    """What cannot be read is the default, where there is one."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode) or os.path.getsize(path) > MAX_READ_BYTES:
            raise ValueError(f"{path} is no file that can be read")
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
        if not isinstance(value, dict):
            raise ValueError(f"{path} holds no object")
        return value
    except (OSError, ValueError, RecursionError):
        if default is NOTHING:
            raise
        return default


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    unfinished = f"{path}.part"
    with open(unfinished, "w", encoding="utf-8", errors="replace") as file:
        json.dump(value, file, ensure_ascii=False, allow_nan=False)
    os.replace(unfinished, path)


def part_named(name):
    """Ends the process when it is called."""
    parts = {"workflow": run_workflow, "grader": run_grader}
    if name not in parts:
        raise SystemExit("usage: start.py in-sandbox workflow|grader")
    return lambda: leave(parts[name]())


def leave(status):
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of the user's code that never end must not keep what is done from being told.
    os._exit(status)
