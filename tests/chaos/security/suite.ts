/** All attacks on one server, one after the other. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  crossPlanes,
  crossRoutes,
  inspectArtifacts,
  searchEverything,
  sendLargeBodies,
  tryIds,
  tryToBind,
  useDeadKeys,
} from './attacks.ts';
import { GuardedServer } from './guarded-server.ts';

export interface SuiteOptions {
  /** Rollouts that live while the server is attacked. */
  readonly held: number;
  readonly attempts: number;
  /** Addresses that it must not listen on. */
  readonly hosts: readonly string[];
  readonly onCheck?: (check: Check) => void;
}

export interface Check {
  readonly name: string;
  readonly detail: string;
  readonly problems: readonly string[];
}

export interface SuiteReport {
  readonly checks: readonly Check[];
  /** From the end of a rollout until its key was refused. */
  readonly refusedAfterMs: readonly number[];
  /** Things planted where none may be. */
  readonly controls: readonly { readonly name: string; readonly isFound: boolean }[];
}

export async function attackServer(options: SuiteOptions): Promise<SuiteReport> {
  const root = mkdtempSync(path.join(os.tmpdir(), 'slipway-security-'));
  const checks: Check[] = [];
  const done = (name: string, problems: readonly string[], detail = ''): void => {
    const check = { name, detail, problems };
    checks.push(check);
    options.onCheck?.(check);
  };
  try {
    done('refusal to bind without a key', await tryToBind(path.join(root, 'state'), options.hosts));
    await using guarded = await GuardedServer.start(root, options.held + 4);
    const held = await Promise.all(
      Array.from({ length: options.held }, (_, index) =>
        guarded.hold(index, {
          ...(index % 3 === 0 ? { suffix: '/refusing' } : {}),
          isBlabbing: index % 4 === 1,
        }),
      ),
    );
    const routes = await crossRoutes(guarded, held, options.attempts);
    const swapped = held.map((rollout, index) => ({
      ...rollout,
      model: held[(index + 1) % held.length]?.model ?? rollout.model,
    }));
    const controls: { name: string; isFound: boolean }[] = [];
    const mixedUp = await crossRoutes(guarded, swapped, 2 * held.length);
    controls.push({ name: 'keys that were mixed up', isFound: mixedUp.problems.length > 0 });
    const counts = `${routes.refused} refused, ${routes.ownRoute} came to their own model`;
    done('keys of one rollout toward another', routes.problems, counts);
    done('keys of one plane on another, and of one tenant', await crossPlanes(guarded, held));
    done('bodies beyond the limits', await sendLargeBodies(guarded));
    const dead = await useDeadKeys(guarded, held);
    const slowest = Math.max(...dead.refusedAfterMs).toFixed(0);
    done(
      'keys of rollouts that ended',
      dead.problems,
      `refused within ${slowest} ms, ${dead.through} calls went through before`,
    );
    done('ids that lead elsewhere', await tryIds(guarded));
    done('links and special files', await inspectArtifacts(guarded, 'held-3'));
    done(
      'secrets in argv, variables, logs, answers, files',
      await searchEverything(guarded),
      `${guarded.secrets.size} secrets`,
    );

    const planted = [...guarded.secrets.values()].at(-1) ?? '';
    writeFileSync(path.join(guarded.dataDir, 'archive', 'planted'), `{"key":"${planted}"}`);
    const sleeper = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)', planted]);
    await once(sleeper, 'spawn');
    const finds = (await searchEverything(guarded)).join('\n');
    sleeper.kill('SIGKILL');
    for (const place of ['archive/planted', `/proc/${sleeper.pid}/cmdline`])
      controls.push({ name: `a secret in ${place}`, isFound: finds.includes(place) });
    return { checks, refusedAfterMs: dead.refusedAfterMs, controls };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
