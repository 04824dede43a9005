/**
 * The service runs a command to its end and then gives its output: no input, no output as it comes, an hour at most. So a program runs detached in the
 * sandbox, with its streams in files of a folder of its own, and short commands start it, look at it, feed it and end it. Each of them may be
 * repeated, as after a lost answer: a folder that is there means that the program was started, and pieces of input are numbered.
 *
 * A program writes into pipes, not files: a shell that reopens `/dev/stderr` would truncate a file. The scripts need a POSIX `sh`, coreutils and /proc
 * in the sandbox, and `setpriv` or `su` for another user.
 */
import { killTreeScript } from '../../shared/kill-tree.ts';

/** Most bytes of one stream in one look. */
export const maxLookBytes = 512 * 1024;
/** Most bytes of one piece of input: it travels in one variable, in base64, and Linux ends those at 128 KiB. */
export const maxPieceBytes = 64 * 1024;
/** For a look without news: 25 × 0.02 s and the rest × 0.1 s. */
export const lookTries = 175;
/** The service ends a look by itself then, were it stuck. */
export const lookLimitSec = 60;

export const pieceVariable = 'SLIPWAY_PIECE';

/** The folder of everything that is ours in a sandbox. */
export const baseFolder = `b=/.slipway; { mkdir -p -m 711 "$b" 2>/dev/null && [ -w "$b" ]; } || { b=/tmp/.slipway; mkdir -p -m 711 "$b"; }`;

const folder = `${baseFolder}; d=$b/run-$1`;

const isRunnerAlive = `
alive() {
  [ -e "$d/runner" ] || return 0
  read -r runner <"$d/runner"
  read -r stat 2>/dev/null <"/proc/$runner/stat" || return 1
  case \${stat##*) } in Z*|X*) return 1;; esac
}
nap() { if [ "$1" -lt 25 ]; then sleep 0.02 2>/dev/null || sleep 1; else sleep 0.1 2>/dev/null || sleep 1; fi; }`;

/** Prints \`slipway CODE FAULT OUT ERR\` (bytes that are there beyond the offsets), then a line of base64 for each stream. */
const look = `${isRunnerAlive}
beyond() { more=0; [ "$2" = 0 ] && [ ! -s "$1" ] || more=$(($(wc -c <"$1") - $2)); }
look() {
  i=0
  while :; do
    is_over=; alive || is_over=1
    code=-; fault=-
    [ ! -e "$d/code" ] || read -r code <"$d/code"
    [ ! -e "$d/fault" ] || read -r fault <"$d/fault"
    beyond "$d/out" "$1"; o=$more; beyond "$d/err" "$2"; e=$more
    [ "$code$fault$is_over" = -- ] || break
    [ "$o" -le 0 ] && [ "$e" -le 0 ] || break
    [ "$4" != begun ] || [ ! -e "$d/pid" ] || break
    i=$((i + 1)); [ "$i" -lt "$3" ] || break
    nap "$i"
  done
  [ -z "$is_over" ] || [ "$code" != - ] || code=lost
  echo "slipway $code $fault $o $e"
  [ "$o" -le 0 ] || tail -c +$(($1 + 1)) "$d/out" | head -c ${maxLookBytes} | base64 | tr -d '\\n'; echo
  [ "$e" -le 0 ] || tail -c +$(($2 + 1)) "$d/err" | head -c ${maxLookBytes} | base64 | tr -d '\\n'; echo
}`;

/** Becomes the program: \`$1\` folder, \`$2\` user, \`$3\` shell, \`$4\` working folder, \`$5\` command. */
const program = `
fault() { echo "$1" >"$slipway_d/fault.new"; mv "$slipway_d/fault.new" "$slipway_d/fault"; exit 126; }
slipway_d=$1; slipway_sh=sh
[ "$3" = sh ] || ! command -v bash >/dev/null 2>&1 || slipway_sh=bash
[ -z "$4" ] || cd "$4" 2>/dev/null || fault cwd
slipway_name=; slipway_uid=; slipway_gid=0
if [ -n "$2" ]; then
  while IFS=: read -r n x u g x h x; do
    if [ "$2" = "$n" ] || [ "$2" = "$u" ]; then slipway_name=$n; slipway_uid=$u; slipway_gid=$g; HOME=$h; break; fi
  done </etc/passwd
  if [ -z "$slipway_uid" ]; then case $2 in *[!0-9]*) fault user;; *) slipway_uid=$2; HOME=/;; esac; fi
  export HOME
fi
begun() { echo $$ >"$slipway_d/pid.new"; mv "$slipway_d/pid.new" "$slipway_d/pid"; }
if [ -z "$slipway_uid" ] || [ "$slipway_uid" = "$(id -u)" ]; then begun; exec "$slipway_sh" -c "$5"; fi
[ "$(id -u)" = 0 ] || fault switch
if command -v setpriv >/dev/null 2>&1; then
  begun
  if [ -n "$slipway_name" ]; then set -- "$5" --init-groups; else set -- "$5" --clear-groups; fi
  exec setpriv --reuid "$slipway_uid" --regid "$slipway_gid" "$2" "$slipway_sh" -c "$1"
fi
[ -n "$slipway_name" ] && command -v su >/dev/null 2>&1 || fault switch
begun
exec su -s "$(command -v "$slipway_sh")" "$slipway_name" -c "$5"`;

/** Keeps the program's streams: \`$1\` folder, \`$2\` whether it has input, \`$3\` the script above, then what that takes. */
const runner = `
d=$1; has_input=$2; program=$3; shift 3
echo $$ >"$d/runner.new"; mv "$d/runner.new" "$d/runner"
cat <"$d/o" >"$d/out" & out=$!
cat <"$d/e" >"$d/err" & err=$!
in=/dev/null; feeder=
if [ "$has_input" = 1 ]; then
  in=$d/i
  ( exec 3<>"$d/ctl"; exec >"$d/i"
    while read -r n <&3; do
      [ "$n" != end ] || break
      if [ -e "$d/in.$n" ]; then cat "$d/in.$n" || break; rm -f "$d/in.$n"; fi
      echo "$n" >"$d/taken.new"; mv "$d/taken.new" "$d/taken"
    done ) & feeder=$!
fi
sh -c "$program" slipway-program "$d" "$@" <"$in" >"$d/o" 2>"$d/e"
code=$?
i=0
while [ "$i" -lt 20 ] && { kill -0 "$out" || kill -0 "$err"; } 2>/dev/null; do i=$((i + 1)); sleep 0.01 2>/dev/null || sleep 1; done
echo "$code" >"$d/code.new"; mv "$d/code.new" "$d/code"
[ -z "$feeder" ] || kill -KILL "$feeder"`;

const start = `${folder}
${look}
if mkdir -m 711 "$d" 2>/dev/null; then
  : >"$d/out"; : >"$d/err"
  mkfifo -m 666 "$d/o" "$d/e"
  [ "$2" != 1 ] || { mkfifo -m 666 "$d/i"; mkfifo -m 600 "$d/ctl"; }
  detach=; ! command -v setsid >/dev/null 2>&1 || detach=setsid
  $detach sh -c "$8" slipway-relay "$d" "$2" "$9" "$3" "$4" "$5" "$6" </dev/null >/dev/null 2>&1 &
  until=$7
  shift 9
  for ended in "$@"; do rm -rf "$b/run-$ended"; done
else
  until=$7
fi
[ -d "$d" ] || { echo "slipway no-folder"; exit; }
look 0 0 ${lookTries} "$until"`;

const more = `${folder}
${look}
[ -d "$d" ] || { echo "slipway no-folder"; exit; }
look "$2" "$3" ${lookTries} news`;

/** Prints \`slipway TAKEN\`: the number of the last piece that the program has, or \`slipway over\`. */
const push = `${folder}
${isRunnerAlive}
[ -d "$d" ] || { echo "slipway over"; exit; }
taken() { taken=0; [ ! -e "$d/taken" ] || read -r taken <"$d/taken"; }
taken
if [ "$2" = end ]; then echo end 1<>"$d/ctl"; echo "slipway $taken"; exit; fi
if [ "$taken" -lt "$2" ] && [ ! -e "$d/in.$2" ]; then
  printf %s "$${pieceVariable}" | base64 -d >"$d/in.$2.new"; mv "$d/in.$2.new" "$d/in.$2"
  echo "$2" 1<>"$d/ctl"
fi
i=0
while taken; [ "$taken" -lt "$2" ]; do
  if [ -e "$d/code" ] || ! alive; then echo "slipway over"; exit; fi
  i=$((i + 1)); [ "$i" -lt ${lookTries} ] || break
  nap "$i"
done
echo "slipway $taken"`;

const kill = `${folder}
i=0
until [ -e "$d/pid" ] || [ -e "$d/code" ] || [ ! -d "$d" ] || [ "$i" -ge 100 ]; do i=$((i + 1)); sleep 0.02 2>/dev/null || sleep 1; done
[ ! -e "$d/code" ] && [ -e "$d/pid" ] || exit 0
read -r pid <"$d/pid"
`;

export interface StartScript {
  readonly id: string;
  readonly hasInput: boolean;
  readonly user: string | null;
  readonly shell: 'bash' | 'sh';
  readonly cwd: string | null;
  readonly command: string;
  /** Answer when it has begun, or only when there is output or an end. */
  readonly until: 'begun' | 'news';
  /** Programs that ended, whose folders can go. */
  readonly ended: readonly string[];
}

export function startArgv(of: StartScript): readonly string[] {
  const { id, hasInput, user, shell, cwd, command, until, ended } = of;
  const input = hasInput ? '1' : '0';
  const words = [id, input, user ?? '', shell, cwd ?? '', command, until, runner, program];
  return ['sh', '-c', start, 'slipway', ...words, ...ended];
}

export function lookArgv(id: string, offsets: { readonly out: number; readonly err: number }) {
  return ['sh', '-c', more, 'slipway', id, String(offsets.out), String(offsets.err)];
}

/** `piece` null = the end of the input. */
export function pushArgv(id: string, piece: number | null): readonly string[] {
  return ['sh', '-c', push, 'slipway', id, piece === null ? 'end' : String(piece)];
}

/** SIGKILLs a program and its descendants. */
export function killArgv(id: string): readonly string[] {
  return ['sh', '-c', `${kill}${killTreeScript('$pid')}`, 'slipway', id];
}

/** The same by pid. */
export function killPidArgv(pid: number): readonly string[] {
  return ['sh', '-c', killTreeScript(pid), 'slipway'];
}
