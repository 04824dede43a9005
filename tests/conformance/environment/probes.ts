import type { Lingering, Probes } from './adapter.ts';

const http = (line: string): string =>
  `printf '${line} HTTP/1.0\\r\\nHost: probe\\r\\n\\r\\n' >&3; cat <&3`;

const connect = (host: string, port: number | string): string =>
  `exec 3<>"/dev/tcp/${host}/${port}" || exit 7`;

/** Sets PROXY_HOST and PROXY_PORT from a variable such as `http_proxy`. */
const proxyOf = (variable: string): string =>
  `p="\${${variable}#*://}"; p="\${p##*@}"; p="\${p%%/*}"; PROXY_HOST="\${p%:*}"; PROXY_PORT="\${p##*:}"`;

/** x86-64 and arm64 numbers of the calls; perl has no names for them. */
const callNumbers = {
  'unshare-user': { x64: 272, arm64: 97, args: '0x10000000' },
  keyctl: { x64: 250, arm64: 219, args: '0, 0xffffffff - 0, 0' },
  bpf: { x64: 321, arm64: 280, args: '0, 0, 0' },
  mount: {
    x64: 165,
    arm64: 40,
    args: '(my $from = "none"), (my $at = "/mnt"), (my $kind = "tmpfs"), 0, 0',
  },
  reboot: { x64: 169, arm64: 142, args: '0, 0, 0, 0' },
} as const;

/** Probes for an image with bash, coreutils and perl. */
export const shellProbes: Probes = {
  fetchDirect: (host, port) =>
    `timeout 3 bash -c '${connect(host, port)}; ${quoted(http('GET /'))}'`,
  fetchProxied: (host, port) =>
    `if [ -z "$http_proxy" ]; then ${shellProbes.fetchDirect(host, port)}; else ${proxyOf('http_proxy')}; ` +
    `export PROXY_HOST PROXY_PORT; timeout 5 bash -c '${connect('$PROXY_HOST', '$PROXY_PORT')}; ` +
    `${quoted(http(`GET http://${host}:${port}/`))}'; fi`,
  fetchTunnelled: (host, port) =>
    `if [ -z "$https_proxy" ]; then ${shellProbes.fetchDirect(host, port)}; else ${proxyOf('https_proxy')}; ` +
    `export PROXY_HOST PROXY_PORT; timeout 5 bash -c '${connect('$PROXY_HOST', '$PROXY_PORT')}; ` +
    `printf "CONNECT ${host}:${port} HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\n\\r\\n" >&3; ` +
    `read -r -u 3 version status rest; [ "$status" = 200 ] || { echo "refused $status"; exit 8; }; ` +
    `while read -r -u 3 line && [ "$line" != "$(printf "\\r")" ]; do :; done; ` +
    `${quoted(http('GET /'))}'; fi`,
  holdMemory: (mebibytes) =>
    `perl -e 'my $x = "x" x (${mebibytes} * 1048576); print "held\\n" if length $x'`,
  burnCpu: (seconds) =>
    `perl -e 'my $end = time + ${seconds}; 1 while time < $end; my ($u, $s) = times; print $u + $s, "\n"'`,
  fork: (children) =>
    `perl -e 'my @c; for (1..${children}) { my $p = fork; last unless defined $p; ` +
    `unless ($p) { sleep 20; exit } push @c, $p } print "forked ", scalar @c, "\n"; kill 9, @c; wait for @c'`,
  linger: (kind, marker) =>
    kind === 'plain'
      ? `sleep 300.${marker} >/dev/null 2>&1 & true`
      : detach(programs[kind], marker),
  systemCall: (name) => {
    const { x64, arm64, args } = callNumbers[name];
    const number = process.arch === 'arm64' ? arm64 : x64;
    return `perl -e 'my $r = syscall(${number}, ${args}); printf "errno=%d\\n", $r == -1 ? $!+0 : 0'`;
  },
};

/** For a command inside single quotes. */
function quoted(command: string): string {
  return command.replaceAll("'", '"');
}

/** Perl programs; each ignores what can be ignored before this is prepended. */
const programs: Record<Exclude<Lingering, 'plain'>, string> = {
  detached: 'sleep 300 while 1',
  'fork-loop': 'while (1) { my $p = fork; select undef, undef, undef, 0.02 unless defined $p }',
  writer:
    'while (1) { open my $f, ">>", "/tmp/written"; print $f "x"; close $f; select undef, undef, undef, 0.02 }',
};

/**
 * Waits until the program says that it ignores its signals, so that a kill cannot come too early to matter. It says so on a pipe, which the
 * shell itself reads: a program that holds every process of the sandbox leaves none for `sleep`.
 */
function detach(program: string, marker: string): string {
  const ignoring =
    '$SIG{TERM} = $SIG{HUP} = $SIG{INT} = "IGNORE"; open R, ">", "/tmp/ready"; print R "\\n"; close R;';
  return (
    `rm -f /tmp/ready; mkfifo /tmp/ready; exec 9<>/tmp/ready; ` +
    `(setsid env -i perl -e '${ignoring} ${program}' ${marker} </dev/null >/dev/null 2>&1 9>&- &); ` +
    `read -r -t 10 -u 9 line; true`
  );
}
