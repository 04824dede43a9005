#!/bin/bash
command=$(cat /app/command.txt)
found=$(printf '%s\n' 9 100 -3 20 | timeout 10 bash -c "$command" | tr '\n' ' ')
echo "command: $command, printed: $found"
correct=0
if [ "$found" = "100 20 9 -3 " ]; then correct=1; fi
printf '{"reward": %d, "correct": %d, "characters": %d}\n' "$correct" "$correct" "${#command}" \
  > /logs/verifier/reward.json
