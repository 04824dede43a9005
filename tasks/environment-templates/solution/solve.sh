#!/bin/bash
[ "$SHOUT" = yes ] && port=${HOME_PORT^^} || port=$HOME_PORT
printf '%s\n' "$port" "${#EMPTY}" "$LITERAL" > /app/variables.txt
