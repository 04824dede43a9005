#!/bin/bash
set -e
cd notes
for file in *.txt; do mv "$file" "${file%.txt}.md"; done
