#!/bin/bash
printf '%s\n' 42 72 108 180 > /tmp/expected.txt
hits=$(paste /tmp/expected.txt /app/feet.txt | awk '$1 == $2' | wc --lines)
echo "right lines: $hits"
awk -v hits="$hits" 'BEGIN { print hits / 4 }' > /logs/verifier/reward.txt
