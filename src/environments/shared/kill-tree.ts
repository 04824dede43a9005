/**
 * A shell script that SIGKILLs a process and all its descendants, found through parent links in /proc. Stopping each level first
 * keeps it from forking while the next level is looked up. Needs only a POSIX `sh` and /proc in the sandbox; run it as root.
 * A process that has left the tree (its parent died) is not found here: that is what `killProcesses` of the port is for. `$pid` stands for a variable that the script before it has set.
 */
export function killTreeScript(pid: number | '$pid'): string {
  return [
    `todo=${pid}; all=`,
    'while [ -n "$todo" ]; do',
    '  next=',
    '  for p in $todo; do kill -STOP "$p" 2>/dev/null; all="$all $p"; done',
    '  for f in /proc/[0-9]*/stat; do',
    '    read -r line 2>/dev/null <"$f" || continue',
    '    rest=${line##*) }; set -- $rest; child=${f#/proc/}; child=${child%/stat}',
    '    for p in $todo; do [ "$2" = "$p" ] && next="$next $child"; done',
    '  done',
    '  todo=$next',
    'done',
    'kill -KILL $all 2>/dev/null; :',
  ].join('\n');
}
