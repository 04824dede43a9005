#!/bin/bash
ask() {
  exec 3<> /dev/tcp/rates/4100
  echo "$1" >&3
  cat <&3
}
echo $((3 * $(ask NOK) + 2 * $(ask SEK))) > /app/price.txt
