"""A runner dies with its server, and what it started dies with it, also when it can no longer act: killed, or for ever in code that holds the interpreter.

The kernel kills the runner when its parent ends. A small process beside it, which waits in the same group, is told when the runner has ended and kills
what is left of the group. The end of the standard input does the same where there is no such kernel."""

import os
import signal

# Not in every Python; and before the folders of the user's code are looked into.
try:
    import ctypes
except ImportError:
    ctypes = None

PR_SET_PDEATHSIG = 1


def stand_guard():
    """Before the first thread and before any of the user's code."""
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    runner = os.getpid()
    if os.fork() == 0:
        wait_for_end(prctl, runner)


def wait_for_end(prctl, runner):
    """Never returns."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        prctl(PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.closerange(3, 64)
        # It may have ended before the kernel was asked to tell.
        if os.getppid() == runner:
            signal.sigwait({signal.SIGUSR1})
        end_group()
    finally:
        os._exit(1)


def end_group():
    group = os.getpgrp()
    if group > 1:  # in a container it may be the first process, whose group is everybody
        os.killpg(group, signal.SIGKILL)
    os._exit(1)
