#!/bin/bash
sum=$(awk '{ sum += $2 } END { print sum }' ledger.txt)
echo "close $sum" >> ledger.txt
