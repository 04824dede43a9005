#!/bin/bash
set -e
mkdir -p build/cache report /logs/artifacts
printf '#!/bin/sh\necho underway\n' > build/program
chmod +x build/program
echo scratch > build/leftover.tmp
echo cached > build/cache/x
build/program > report/summary.txt
stat --format=%s build/program > /logs/artifacts/note.txt
