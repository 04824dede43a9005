# Shared by the tests of all steps. Judges the ledger by its lines, joined by spaces.
expect_ledger() {
  local found
  found=$(tr '\n' ' ' < /app/ledger.txt)
  echo "ledger: $found"
  if [ "$found" = "$1 " ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
}
