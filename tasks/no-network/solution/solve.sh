#!/bin/bash
connect() { timeout 5 bash -c ": < /dev/tcp/$1/$2"; }
{
  awk 'NR > 1 && $2 == "00000000"' /proc/net/route | wc --lines
  connect 192.0.2.1 80
  if [ $? = 1 ]; then echo closed; else echo open; fi
  connect 127.0.0.1 9
  if [ $? = 1 ]; then echo loopback; fi
} > /app/network.txt
