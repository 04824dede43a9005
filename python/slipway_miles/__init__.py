"""The agent function of a trainer on Miles whose trials Slipway runs, with the standard library only.

    --custom-agent-function-path slipway_miles.run

with `AGENT_SERVER_URL` naming the server. `abort` stands beside `run`, where the trainer looks for it. Options instead of variables come from a module of one's own:

    from slipway_miles import Plugin
    plugin = Plugin(url="http://127.0.0.1:8000", secret="…")
    run, abort = plugin.run, plugin.abort
"""

from .plugin import Plugin

_plugin = Plugin()

run = _plugin.run
abort = _plugin.abort

__all__ = ["Plugin", "abort", "run"]
