/**
 * What runs for a command. The argv is constant, and all that it is to do comes as the first line of its input: nothing of a command or of its variables is seen
 * in a list of processes outside, in an address, or in a log of the provider. Needs `sh` in the image; another user needs root and one of setpriv, chroot or su.
 */
import { RolloutError } from '../../../core/errors.ts';
import { reportPid } from '../pid-line.ts';
import { shellQuote } from '../shell-quote.ts';

/** Reads a script as one line from its input and becomes it; the rest of the input is the script's. */
export const insideArgv: readonly string[] = [
  'sh',
  '-c',
  'IFS= read -r slipway_s && eval "$(printf %b "$slipway_s")"',
];

/** A script as that line, with its end. */
export function scriptLine(script: string): string {
  if (script.includes('\0'))
    throw new RolloutError('EXEC_FAILED', 'a command or variable holds a NUL byte', {
      phase: 'environment',
      retryable: false,
      remedy: 'Upload binary content as a file.',
    });
  return `${script.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n`;
}

export interface InsideCommand {
  /** What the shell becomes. */
  readonly run: 'sh' | 'bash' | 'shell' | { readonly plain: string };
  readonly command?: string;
  readonly cwd: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** null = whoever the provider runs programs as. */
  readonly user: string | number | null;
  /** `none`: empty. `open`: what comes behind the line. A number: that many bytes of it, for streams that cannot say where they end. */
  readonly input: 'none' | 'open' | number;
}

export function commandScript(wanted: InsideCommand): string {
  const lines = [
    ...(wanted.cwd === null ? [] : [`cd -- ${shellQuote(wanted.cwd)} || exit 126`]),
    ...Object.entries(wanted.env).map(([name, value]) => exported(name, value)),
  ];
  const input = typeof wanted.input === 'number' ? `head -c ${wanted.input} | ` : '';
  if (wanted.input === 'none') lines.push('exec </dev/null');
  const begin = [reportPid, `${input}${input === '' ? 'exec ' : ''}${programOf(wanted)}`];
  if (wanted.user === null) return [...lines, ...begin].join('\n');
  const inner = shellQuote(begin.join('\n'));
  return [
    ...lines,
    userScript(String(wanted.user), 'HOME' in wanted.env),
    becomeScript(inner),
  ].join('\n');
}

function programOf({ run, command = '' }: InsideCommand): string {
  if (typeof run === 'object') return run.plain;
  const quoted = shellQuote(command);
  if (run === 'sh') return `sh -c ${quoted}`;
  const [bash, sh] =
    run === 'bash'
      ? [`exec bash -c ${quoted}`, `exec sh -c ${quoted}`]
      : ['exec bash --noprofile --norc', 'exec sh'];
  return `sh -c ${shellQuote(`if command -v bash >/dev/null 2>&1; then ${bash}; else ${sh}; fi`)}`;
}

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

function exported(name: string, value: string): string {
  if (variableName.test(name)) return `export ${name}=${shellQuote(value)}`;
  throw new RolloutError('EXEC_FAILED', `"${name}" cannot name a variable in a shell`, {
    phase: 'environment',
    retryable: false,
    field: `env.${name}`,
    remedy: 'Use letters, digits and underscores.',
  });
}

/** Every name of ours is one that no image uses: a name that the image exports would be changed for the command. */
const own = (text: string): string => text.replaceAll('@', 'slipway_');

/** Sets uid, gid, groups and name of a user as an engine would: an unknown number has no group but 0, an unknown name is refused. */
function userScript(user: string, keepsHome: boolean): string {
  const look = own(`@uid=; @gid=0; @home=/; @name=
while IFS=: read -r @n @p @i @g @c @h @r || [ -n "$@n" ]; do
  if [ "$@n" = "$@user" ] || [ "$@i" = "$@user" ]; then @uid=$@i; @gid=$@g; @home=$@h; @name=$@n; break; fi
done </etc/passwd
case $@user in
  *[!0-9]*) [ -n "$@uid" ] || { echo "the image has no user $@user" >&2; exit 126; };;
  *) @uid=\${@uid:-$@user};;
esac
@groups=$@gid
[ -z "$@name" ] || while IFS=: read -r @n @p @i @m || [ -n "$@n" ]; do
  case ",$@m," in *",$@name,"*) @groups="$@groups,$@i";; esac
done </etc/group
${keepsHome ? '' : 'export HOME="$@home"'}`);
  return `${own('@user=')}${shellQuote(user)}\n${look}`;
}

function becomeScript(inner: string): string {
  const before =
    own(`if [ "$(id -u)" = "$@uid" ] && [ "$(id -g)" = "$@gid" ]; then exec sh -c "$@inner"; fi
[ "$(id -u)" = 0 ] || { echo "only root can run a command as the user $@user: run the sandbox as root" >&2; exit 126; }
if setpriv --reuid "$@uid" --regid "$@gid" --groups "$@groups" true 2>/dev/null; then
  exec setpriv --reuid "$@uid" --regid "$@gid" --groups "$@groups" sh -c "$@inner"
elif chroot --userspec "$@uid:$@gid" --groups "$@groups" / true 2>/dev/null; then
  exec chroot --userspec "$@uid:$@gid" --groups "$@groups" / sh -c 'cd -- "$1" && eval "$2"' sh "$PWD" "$@inner"
elif [ -n "$@name" ] && command -v su >/dev/null 2>&1; then
  exec su -s /bin/sh "$@name" -c "$@inner"
fi
echo "the image has none of setpriv, chroot and su to become $@user" >&2; exit 126`);
  return `${own('@inner=')}${inner}\n${before}`;
}
