"""Validates trajectories with two validators that are not ours. One JSON document per line of input: {"text": ...} or {"file": ...}; one line of
output for each: {"atif": [...], "harbor": [...]}, the places that each refuses, as dotted paths; "" is the document itself."""

import json
import sys
import types

packages = sys.argv[1]
sys.path.insert(0, packages)

# Harbor's packages import all of Harbor when they are loaded; these stand in their place, and only the named modules are read.
for name in ("harbor", "harbor.models", "harbor.utils"):
    module = types.ModuleType(name)
    module.__path__ = [f"{packages}/{name.replace('.', '/')}"]
    sys.modules[name] = module

from atif import Trajectory  # noqa: E402
from harbor.models.trajectories import Trajectory as HarborTrajectory  # noqa: E402
from harbor.utils.trajectory_validator import TrajectoryValidator  # noqa: E402
from pydantic import ValidationError  # noqa: E402


def with_atif(value):
    try:
        Trajectory.model_validate(value)
        return []
    except ValidationError as error:
        return [".".join(str(part) for part in each["loc"]) for each in error.errors()]


def with_harbor(value, file):
    validator = TrajectoryValidator()
    validator.validate(file if file is not None else value)
    return validator.get_errors()


for line in sys.stdin:
    request = json.loads(line)
    file = request.get("file")
    if file is None:
        text = request["text"]
    else:
        with open(file, encoding="utf-8") as stream:
            text = stream.read()
    try:
        value = json.loads(text)
        answer = {"atif": with_atif(value), "harbor": with_harbor(value, file)}
        if request.get("dump") and not answer["harbor"]:
            answer["dump"] = HarborTrajectory(**value).to_json_dict()
    except ValueError as error:
        answer = {"atif": [f"not JSON: {error}"], "harbor": [f"Invalid JSON: {error}"]}
    print(json.dumps(answer), flush=True)
