#!/bin/bash
. /tests/ledger.sh
expect_ledger "open 250"
