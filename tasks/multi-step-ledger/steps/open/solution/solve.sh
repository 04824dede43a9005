#!/bin/bash
echo "open $(cat opening-balance.txt)" > ledger.txt
