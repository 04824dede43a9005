#!/bin/bash
if cmp --silent draft.txt published.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
