#!/bin/bash
sort --numeric-sort entries.csv | while IFS=, read -r _ amount; do echo "post $amount"; done >> ledger.txt
