#!/bin/bash
# What only the solution is given must not reach the verifier.
echo "expected port: $EXPECTED_PORT, SHOUT: ${SHOUT-unset}"
expected=$(printf '%s\n' "${EXPECTED_PORT^^}" 0 'to-${HOME_PORT}-and-$back')
if [ -n "$EXPECTED_PORT" ] && [ -z "${SHOUT+set}" ] && [ -n "${EMPTY+set}" ] &&
  [ "$(cat /app/variables.txt)" = "$expected" ]; then
  echo 1
else
  echo 0
fi > /logs/verifier/reward.txt
