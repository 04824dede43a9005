"""python -u -m slipway_runner ROLE"""

import sys

from .process import serve


def role_named(name):
    """Roles import what they stand on: only the one that was asked for is loaded."""
    if name == "workflow":
        from .workflow import WorkflowRole

        return WorkflowRole()
    if name == "harbor-agent":
        from .harbor_agent import HarborAgentRole

        return HarborAgentRole()
    raise SystemExit(f"slipway_runner: no role is called {name!r}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -u -m slipway_runner ROLE")
    serve(lambda: role_named(sys.argv[1]))
