#!/bin/bash
echo "$(id -un) $(id -u)" > /app/whoami.txt
touch /app/locked/file || echo denied >> /app/whoami.txt
