#!/bin/bash
# Runs in the working folder too: the paths are relative on purpose.
found=$(cd notes && echo *)
echo "in $PWD/notes: $found"
if [ "$PWD" = /srv/project ] && [ "$found" = "first.md image.svg second.md" ]; then
  echo 1
else
  echo 0
fi > /logs/verifier/reward.txt
