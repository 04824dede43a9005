/**
 * A filter of system calls that lets proot's path translation be complete. proot knows the calls of its time; one that it does not
 * know passes with its path as it is and would act on the host's files. Those calls fail with ENOSYS instead, as
 * on a kernel before 5.1, and programs then use the older ones, which proot translates. Calls that change the machine itself are
 * forbidden: where Slipway runs as root, so do the processes.
 */
import { constants } from 'node:os';

/** From here on numbers are the same everywhere, and proot may know none of them. */
const firstOfLinux51 = 424;
/** Among those, the ones without a path: pidfd_open, close_range, epoll_pwait2. */
const harmless = [434, 436, 441] as const;

/**
 * Numbers of `prctl`; of statx, execveat, renameat2, name_to_handle_at, open_by_handle_at; of mount, umount2, pivot_root, swapon,
 * swapoff, acct, reboot, kexec_load, kexec_file_load, init_module, finit_module, delete_module, settimeofday, clock_settime,
 * sethostname, setdomainname, bpf, add_key, request_key, keyctl, unshare, setns.
 */
const machines: Readonly<Record<string, Machine>> = {
  x64: {
    audit: 0xc000003e,
    prctl: 157,
    unknown: [332, 322, 316, 303, 304],
    forbidden: [
      ...[165, 166, 155, 167, 168, 163, 169, 246, 320, 175, 313, 176],
      ...[164, 227, 170, 171, 321, 248, 249, 250, 272, 308],
    ],
  },
  arm64: {
    audit: 0xc00000b7,
    prctl: 167,
    unknown: [291, 281, 276, 264, 265],
    forbidden: [
      ...[40, 39, 41, 224, 225, 89, 142, 104, 294, 105, 273, 106],
      ...[170, 112, 161, 162, 280, 217, 218, 219, 97, 268],
    ],
  },
};

interface Machine {
  /** AUDIT_ARCH of its native calls. */
  readonly audit: number;
  readonly prctl: number;
  readonly unknown: readonly number[];
  readonly forbidden: readonly number[];
}

const load = 0x20;
const jumpEqual = 0x15;
const jumpGreaterOrEqual = 0x35;
const answer = 0x06;
const allow = 0x7fff0000;
const notImplemented = 0x00050000 | constants.errno.ENOSYS;
const notPermitted = 0x00050000 | constants.errno.EPERM;
const numberAt = 0;
const architectureAt = 4;

/** The filter as classic BPF, 8 bytes for each instruction; null for a processor that it is not written for. */
export function callFilter(architecture: string = process.arch): Buffer | null {
  const machine = machines[architecture];
  if (machine === undefined) return null;
  const when = (number: number, result: number): Instruction[] => [
    [jumpEqual, 0, 1, number],
    [answer, 0, 0, result],
  ];
  return encoded([
    [load, 0, 0, architectureAt],
    [jumpEqual, 1, 0, machine.audit],
    [answer, 0, 0, notImplemented], // calls of a 32-bit program
    [load, 0, 0, numberAt],
    ...harmless.flatMap((number) => when(number, allow)),
    ...machine.unknown.flatMap((number) => when(number, notImplemented)),
    ...machine.forbidden.flatMap((number) => when(number, notPermitted)),
    [jumpGreaterOrEqual, 0, 1, firstOfLinux51],
    [answer, 0, 0, notImplemented],
    [answer, 0, 0, allow],
  ]);
}

/** Code, jump when true, jump when false, operand. */
type Instruction = readonly [number, number, number, number];

function encoded(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [at, [code, onTrue, onFalse, operand]] of program.entries()) {
    bytes.writeUInt16LE(code, at * 8);
    bytes.writeUInt8(onTrue, at * 8 + 2);
    bytes.writeUInt8(onFalse, at * 8 + 3);
    bytes.writeUInt32LE(operand, at * 8 + 4);
  }
  return bytes;
}

/**
 * Words that run a program of the host under the filter. Perl makes the two calls, because no common program of the host does; every
 * Debian and Ubuntu has it.
 */
export function underCallFilter(
  command: readonly string[],
  architecture: string = process.arch,
): readonly string[] {
  const filter = callFilter(architecture);
  if (filter === null) throw new Error(`no call filter for ${architecture}`);
  return [
    'perl',
    '-e',
    filterScript(machines[architecture]?.prctl ?? 0),
    filter.toString('hex'),
    ...command,
  ];
}

/** PR_SET_NO_NEW_PRIVS, then PR_SET_SECCOMP with a `sock_fprog`. */
function filterScript(prctl: number): string {
  return [
    'my $filter = pack("H*", shift); my $program = pack("S x6 P", length($filter) / 8, $filter);',
    `syscall(${prctl}, 38, 1, 0, 0, 0) == 0 && syscall(${prctl}, 22, 2, $program) == 0`,
    'or die "the filter of system calls is refused: $!\\n";',
    'exec { $ARGV[0] } @ARGV or die "$ARGV[0]: $!\\n";',
  ].join(' ');
}
