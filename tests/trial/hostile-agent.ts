/** An agent that does not want to end, and a look at the host for what is left of it. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { FolderFiles } from '../fakes/task-folder.ts';
import { image, type AgentBehaviour } from './trial-bench.ts';

export const hostilePort = 8099;

/** Without an answer the verdict is 0.25; then the script gives a survivor time to write over it. */
export const hostileTask: FolderFiles = {
  'task.toml': `[environment]\ndocker_image = "${image}"\nnetwork_mode = "no-network"\n[verifier]\ntimeout_sec = 30.0\n`,
  'instruction.md': 'Do the work.\n',
  'environment/.gitkeep': '',
  'tests/test.sh': '#!/bin/bash\necho 0.25 > /logs/verifier/reward.txt\nsleep 0.6\n',
};

export interface HostileAgent extends AgentBehaviour {
  /** In the command line of each of its processes. */
  readonly marker: string;
}

/**
 * Leaves processes behind that ignore SIGTERM, were forked twice and made sessions of their own under a cleared environment: one waits for the
 * tests to come and then writes a reward every 20 ms, one listens on a port. Plants a reward file and a link. `stays` keeps its own command running until it is killed.
 */
export function hostileAgent({ stays }: { readonly stays: boolean }): HostileAgent {
  const marker = `hostile-${randomUUID()}`;
  const script = [
    `cat > /tmp/${marker}.sh <<'EOF'`,
    `trap '' TERM HUP INT`,
    `until [ -e /tests/test.sh ]; do sleep 0.02; done`,
    `while :; do echo 1 > /tmp/$$; mv /tmp/$$ /logs/verifier/reward.txt; sleep 0.02; done 2>/dev/null`,
    'EOF',
    `cat > /tmp/${marker}.pl <<'EOF'`,
    `$SIG{TERM} = $SIG{HUP} = 'IGNORE';`,
    `use IO::Socket::INET;`,
    `my $server = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', LocalPort => ${hostilePort}) or die;`,
    `sleep 3600 while 1;`,
    'EOF',
    `echo '{"reward": 1}' > /logs/verifier/reward.json`,
    `echo 1 > /logs/verifier/reward.txt`,
    `ln -sf /tmp/elsewhere /logs/verifier/test-stdout.txt`,
    `fork() { ( env -i PATH="$PATH" setsid sh -c '( setsid "$@" & ) &' sh "$@" < /dev/null > /dev/null 2>&1 & ) }`,
    `fork bash /tmp/${marker}.sh`,
    `fork perl /tmp/${marker}.pl`,
    'sleep 0.3',
    ...(stays ? [`exec bash /tmp/${marker}.sh`] : []),
  ].join('\n');
  return {
    marker,
    run: async ({ environment }, signal) => {
      await environment.exec({ command: script }, signal);
    },
  };
}

export interface HostProcess {
  readonly pid: number;
  readonly pidNamespace: string;
  readonly cgroup: string;
}

/** Processes on the host by their command line. */
export function processesWith(marker: string): readonly HostProcess[] {
  return allProcesses().flatMap(({ pid, commandLine, ...where }) =>
    commandLine.includes(marker) && pid !== process.pid ? [{ pid, ...where }] : [],
  );
}

function programsWith(marker: string): readonly HostProcess[] {
  return allProcesses().filter(({ commandLine }) =>
    new RegExp(`^(bash|perl)\\0/tmp/${marker}`).test(commandLine),
  );
}

/** Processes on the host that live where those lived: in one of their pid namespaces or cgroups, the host's own left out. */
export function processesBeside(lost: readonly HostProcess[]): readonly HostProcess[] {
  const own = allProcesses().find(({ pid }) => pid === process.pid);
  const namespaces = new Set(lost.map(({ pidNamespace }) => pidNamespace));
  const cgroups = new Set(lost.map(({ cgroup }) => cgroup));
  if (own !== undefined) {
    namespaces.delete(own.pidNamespace);
    cgroups.delete(own.cgroup);
  }
  return allProcesses().filter(
    ({ pidNamespace, cgroup }) => namespaces.has(pidNamespace) || cgroups.has(cgroup),
  );
}

/** Zombies are dead: they only wait to be counted. */
function allProcesses(): readonly (HostProcess & { readonly commandLine: string })[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const status = readFileSync(`/proc/${name}/stat`, 'utf8');
        if (/\) [ZX] /.test(status)) return [];
        return [
          {
            pid: Number(name),
            pidNamespace: readlinkSync(`/proc/${name}/ns/pid`),
            cgroup: readFileSync(`/proc/${name}/cgroup`, 'utf8'),
            commandLine: readFileSync(`/proc/${name}/cmdline`, 'utf8'),
          },
        ];
      } catch {
        return []; // it ended meanwhile
      }
    });
}

/** Waits until so many of the agent's own programs run; the shells that forked them do not count. */
export async function untilAlive(
  marker: string,
  count: number,
  limitMs = 30_000,
): Promise<readonly HostProcess[]> {
  const endsAt = performance.now() + limitMs;
  for (;;) {
    const found = programsWith(marker);
    if (found.length >= count) return found;
    if (performance.now() > endsAt)
      throw new Error(`${found.length} of ${count} hostile processes after ${limitMs} ms`);
    await pause(50);
  }
}
