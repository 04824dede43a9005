#!/bin/bash
# Runs before the step's agent: the entries appear only now.
mv entries-by-arrival.csv entries.csv
