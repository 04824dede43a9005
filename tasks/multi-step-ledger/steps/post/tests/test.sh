#!/bin/bash
. /tests/ledger.sh
expect_ledger "open 250 post 15 post 75 post -40"
