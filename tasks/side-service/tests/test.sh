#!/bin/bash
ask() {
  exec 3<> /dev/tcp/rates/4100
  echo "$1" >&3
  cat <&3
}
expected=$((3 * $(ask NOK) + 2 * $(ask SEK)))
found=$(cat /app/price.txt)
echo "expected $expected, found $found"
if [ "$expected" -gt 0 ] && [ "$found" = "$expected" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
