#!/bin/bash
echo "verifier: $(id -un)"
owner=$(stat --format=%U /app/whoami.txt)
lines=$(tr '\n' ';' < /app/whoami.txt)
echo "owner: $owner, lines: $lines"
if [ "$(id -u)" = 4002 ] && [ "$owner" = sailor ] && [ "$lines" = "sailor 4001;denied;" ]; then
  echo 1
else
  echo 0
fi > /logs/verifier/reward.txt
