#!/bin/bash
# The agent's findings must be right, and the verifier looks for itself.
connect() { timeout 5 bash -c ": < /dev/tcp/$1/$2"; }
routes=$(awk 'NR > 1 && $2 == "00000000"' /proc/net/route | wc --lines)
connect 192.0.2.1 80
outside=$?
found=$(tr '\n' ' ' < /app/network.txt)
echo "routes: $routes, connect: $outside, agent found: $found"
if [ "$routes" = 0 ] && [ "$outside" = 1 ] && [ "$found" = "0 closed loopback " ]; then
  echo 1
else
  echo 0
fi > /logs/verifier/reward.txt
