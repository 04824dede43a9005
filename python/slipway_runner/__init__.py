"""Carries out users' code for a Slipway server: one process, one order at a time, JSON lines on standard input and output.

Started and supervised by the server (src/runner). Uses the standard library only; what the user's code needs comes from the user's interpreter.
"""
