#!/bin/bash
answer=$(cat /srv/answer.txt)
echo "answer: $answer"
if [ "$answer" = left/inner/two.txt ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
