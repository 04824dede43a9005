"""What an order leaves at work in the process: a runner with leftovers serves no second rollout."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor


class CountingExecutor(ThreadPoolExecutor):
    """The loop's own: its threads stay, and only what they are doing counts."""

    def __init__(self):
        super().__init__(thread_name_prefix="slipway-worker")
        self._counting = threading.Lock()
        self.running = 0

    def submit(self, *args, **kwargs):
        future = super().submit(*args, **kwargs)
        with self._counting:
            self.running += 1
        future.add_done_callback(self._finished)
        return future

    def _finished(self, _future):
        with self._counting:
            self.running -= 1


class Leftovers:
    """Made before the order, in the loop."""

    def __init__(self, executor):
        self._executor = executor
        self._tasks = set(asyncio.all_tasks())
        self._threads = set(threading.enumerate())
        self._children = child_processes()
        self._is_spoilt = False

    def spoil(self):
        """Whatever is found: the process is not to be trusted any more."""
        self._is_spoilt = True

    def are_none(self):
        if self._is_spoilt or self._executor.running > 0:
            return False
        threads = [
            thread
            for thread in threading.enumerate()
            if thread not in self._threads and not thread.name.startswith("slipway-worker")
        ]
        tasks = asyncio.all_tasks() - self._tasks
        return not threads and not tasks and child_processes() <= self._children


def child_processes():
    """Where the system does not tell, there are none."""
    found = set()
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children", encoding="ascii") as children:
                found.update(children.read().split())
    except OSError:
        pass
    return found
