#!/bin/bash
set -e
mkdir -p /app/cargo/crates
cd /app/cargo
seq 12900000 > numbers.txt
for number in {1..1000}; do echo "$number" > "crates/crate-$number"; done
