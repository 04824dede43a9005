#!/bin/bash
cat /srv/lighthouse/signal
if [ -s /app/signal.txt ] && cmp /srv/lighthouse/signal /app/signal.txt; then
  echo 1
else
  echo 0
fi > /logs/verifier/reward.txt
