"""Packages of the user's code for the Python of a sandbox, installed beside it by another Python, which has pip and reaches an index.

start.py in-sandbox python ..... prints what wheels have to fit, as JSON
start.py install ............... reads {"target", "python", "requirements", "file"} from its input and becomes pip
"""

import importlib.util
import json
import platform
import runpy
import sys

NO_PIP = 3
OLDEST_GLIBC = 5
# Of any that will be for a long time: what an image says is not trusted with the length of a list.
NEWEST_GLIBC = 99


def describe_python():
    print(
        json.dumps(
            {
                "version": ".".join(map(str, sys.version_info[:3])),
                "implementation": sys.implementation.name,
                "abi_flags": getattr(sys, "abiflags", ""),
                "machine": platform.machine(),
                "libc": list(platform.libc_ver()),
            }
        )
    )


def install():
    """Never returns. The order stands on the input, since addresses in it may hold credentials."""
    order = json.load(sys.stdin)
    if importlib.util.find_spec("pip") is None:
        print("this Python has no pip", file=sys.stderr)
        raise SystemExit(NO_PIP)
    mark_target(order["python"])
    wanted = ["-r", order["file"]] if order["file"] is not None else order["requirements"]
    sys.argv = ["pip", "install", *options_for(order["target"], order["python"]), *wanted]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


def options_for(target, python):
    """Wheels only: what is built here may not run there."""
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile", "--no-warn-conflicts"]
    implementation = {"cpython": "cp", "pypy": "pp"}.get(python["implementation"], "py")
    options = ["--only-binary", ":all:", "--python-version", python["version"], "--implementation", implementation]
    if "t" in python["abi_flags"]:
        options += ["--abi", "cp{}{}t".format(*python["version"].split("."))]
    for each in platforms(python):
        options += ["--platform", each]
    return [*quiet, "--target", target, *options]


def platforms(python):
    machine, (libc, version) = python["machine"], python["libc"]
    if libc != "glibc":
        names = ["musllinux_1_2", "musllinux_1_1", "linux"]
    else:
        newest = min(int(version.split(".")[1]), NEWEST_GLIBC)
        exact = [f"manylinux_2_{minor}" for minor in range(newest, OLDEST_GLIBC - 1, -1)]
        # As they were called before their names said the version.
        older = [name for name, least in (("manylinux2014", 17), ("manylinux2010", 12), ("manylinux1", 5)) if newest >= least]
        names = [*exact, *older, "linux"]
    return [f"{name}_{machine}" for name in names]


def mark_target(python):
    """Conditions of requirements (`python_version < "3.11"`) are those of the sandbox; pip asks the Python that it runs in."""
    try:
        from pip._vendor.packaging import markers
    except ImportError:
        return
    usual = markers.default_environment
    names = {"cpython": "CPython", "pypy": "PyPy"}
    implementation = python["implementation"]
    target = {
        "implementation_name": implementation,
        "implementation_version": python["version"],
        "os_name": "posix",
        "platform_machine": python["machine"],
        "platform_python_implementation": names.get(implementation, implementation),
        "platform_system": "Linux",
        "python_full_version": python["version"],
        "python_version": ".".join(python["version"].split(".")[:2]),
        "sys_platform": "linux",
    }
    markers.default_environment = lambda: {**usual(), **target}
