#!/bin/bash
echo 'sort --numeric-sort --reverse -' > /app/command.txt
