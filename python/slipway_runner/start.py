"""python -u …/slipway_runner/start.py ROLE | in-sandbox PART | install

Started as a file, so that Python puts nothing of the working folder before its own library: a `json.py` of the user must not become the runner's. The
runner and what it stands on are imported first; then modules are found as where `python -m` starts a program, the working folder of a sandbox last.
"""

import os
import sys

OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))


def main(arguments):
    usual = without_own_folder(sys.path)
    sys.path[:] = library_first(usual)
    work = work_named(arguments)
    if arguments[0] != "install":
        sys.path[:] = with_working_folder(usual, is_first=arguments[0] != "in-sandbox")
    work()


def without_own_folder(path):
    """Python puts it first, unless it was told not to. What is in it would hide modules of the user: `process`, `loading`."""
    return path[1:] if path and os.path.abspath(path[0]) == OWN_FOLDER else list(path)


def library_first(path):
    """What PYTHONPATH names stands before the library otherwise; an empty name in it is the working folder."""
    given = os.environ.get("PYTHONPATH", "")
    names = given.split(os.pathsep) if given else []
    named = {os.path.abspath(each) if each else working_folder() for each in names}
    later = [each for each in path if os.path.abspath(each) in named]
    return [os.path.dirname(OWN_FOLDER), *(each for each in path if each not in later), *later]


def with_working_folder(path, is_first):
    folder = working_folder()
    if folder is None or getattr(sys.flags, "safe_path", False):
        return path
    return [folder, *path] if is_first else [*path, folder]


def working_folder():
    """None = it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def work_named(arguments):
    """Imports what the work stands on, and nothing of the user. Each role has its own needs."""
    if arguments == ["workflow"]:
        from slipway_runner.process import serve
        from slipway_runner.workflow import WorkflowRole

        return lambda: serve(WorkflowRole)
    if arguments == ["harbor-agent"]:
        from slipway_runner.harbor_agent import HarborAgentRole
        from slipway_runner.process import serve

        return lambda: serve(HarborAgentRole)
    if arguments == ["install"]:
        from slipway_runner.packages import install

        return install
    if arguments == ["in-sandbox", "python"]:
        from slipway_runner.packages import describe_python

        return describe_python
    if arguments[:2] == ["in-sandbox", "imports"] and len(arguments) == 3:
        from slipway_runner.imports import look_at

        return lambda: look_at(arguments[2])
    if len(arguments) == 2 and arguments[0] == "in-sandbox":
        from slipway_runner.in_sandbox import part_named

        return part_named(arguments[1])
    raise SystemExit("usage: start.py workflow | harbor-agent | in-sandbox workflow|grader|python|imports | install")


if __name__ == "__main__":
    main(sys.argv[1:])
