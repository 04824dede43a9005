#!/bin/bash
passes() {
  cd /app/cargo || return
  seq 12900000 | cmp - numbers.txt || return
  [ "$(ls crates | wc --lines)" = 1000 ] || return
  for number in {1..1000}; do
    read -r found < "crates/crate-$number"
    [ "$found" = "$number" ] || return
  done
}
if passes; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
