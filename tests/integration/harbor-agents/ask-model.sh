#!/bin/bash
# Asks the model at OPENAI_BASE_URL what to do, with nothing but bash, and does it.
set -eu
if [ "${1:-}" = --version ]; then echo 9.8.7; exit 0; fi
rest=${OPENAI_BASE_URL#http://}
host=${rest%%/*}
path=/${rest#*/}
body="{\"model\":\"some-model\",\"messages\":[{\"role\":\"user\",\"content\":\"go\"}]}"
exec 3<>"/dev/tcp/${host%:*}/${host##*:}"
printf 'POST %s/chat/completions HTTP/1.1\r\nhost: %s\r\nauthorization: Bearer %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s' \
  "${path%/}" "$host" "$OPENAI_API_KEY" "${#body}" "$body" >&3
answer=$(cat <&3)
command=$(sed -n 's/.*"content":"\([^"]*\)".*/\1/p' <<<"$answer")
if [ -z "$command" ]; then echo "API Error: ${answer%%$'\r'*}: too many requests" >&2; exit 1; fi
bash -c "$command"
echo "did what the model said"
