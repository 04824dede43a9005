#!/bin/bash
# A weak draft on purpose: the gate is what this task is about.
printf '%s\n' anchor aaaa bbbb cccc > draft.txt
