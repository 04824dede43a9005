#!/bin/bash
# The agent's own folder must not be here, only its artifacts.
if [ -e /app/message.txt ]; then echo "this is the agent's environment"; exit 1; fi
echo "lines counted in the agent's environment: $(cat /app/facts.txt)"
if cmp /app/translation.txt /tests/expected.txt && [ "$(cat /app/facts.txt)" = 2 ]; then
  echo 1
else
  echo 0
fi > /logs/verifier/reward.txt
