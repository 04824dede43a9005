#!/bin/bash
for megabytes in 16 640; do
  if perl -e '$x = "a" x ($ARGV[0] << 20)' "$megabytes"; then echo "$megabytes lives"; else echo "$megabytes dies"; fi
done > /app/memory.txt
