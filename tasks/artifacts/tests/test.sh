#!/bin/bash
passes() {
  [ -x build/program ] && [ "$(build/program)" = underway ] &&
    [ "$(cat report/summary.txt)" = underway ] &&
    [ "$(cat /logs/artifacts/note.txt)" = "$(stat --format=%s build/program)" ] &&
    [ -e build/leftover.tmp ] && [ -e build/cache/x ]
}
if passes; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
