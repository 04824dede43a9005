#!/bin/bash
# The verifier runs under the same limit and looks for itself.
perl -e '$x = "a" x ($ARGV[0] << 20)' 16
small=$?
perl -e '$x = "a" x ($ARGV[0] << 20)' 640
large=$?
found=$(tr '\n' ';' < /app/memory.txt)
echo "small: $small, large: $large, agent found: $found"
if [ "$small" = 0 ] && [ "$large" = 137 ] && [ "$found" = "16 lives;640 dies;" ]; then
  echo 1
else
  echo 0
fi > /logs/verifier/reward.txt
