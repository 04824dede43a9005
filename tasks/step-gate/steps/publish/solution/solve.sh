#!/bin/bash
cp draft.txt published.txt
