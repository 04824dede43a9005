#!/bin/bash
answer=$(cat /app/answer.txt)
echo "answer: $answer"
if [ "$answer" = 165 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
