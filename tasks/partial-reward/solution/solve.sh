#!/bin/bash
awk '/^[0-9]+$/ { print $1 * 6; next } { print "?" }' /app/depths.txt > /app/feet.txt
