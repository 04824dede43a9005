#!/bin/bash
grep --recursive --files-with-matches ace left right > /srv/answer.txt
