#!/bin/bash
awk -F, '$1 == "harbour-café" { sum += $2 } END { print sum }' /app/orders.csv > /app/answer.txt
