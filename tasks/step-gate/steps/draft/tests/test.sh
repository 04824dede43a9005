#!/bin/bash
hits=$(sort --unique draft.txt | grep --count --line-regexp -e anchor -e buoy -e crane -e dock)
echo "words found: ${hits:-0}"
awk -v hits="${hits:-0}" 'BEGIN { print hits / 4 }' > /logs/verifier/reward.txt
