#!/bin/bash
tr 'd-za-c' 'a-z' < /app/message.txt > /app/translation.txt
