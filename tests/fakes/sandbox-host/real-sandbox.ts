/** Sandboxes of the local environment as the bodies of a fake provider's sandboxes. A packet filter in the network of each is what the provider's would be. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { never } from '../../../src/core/linked-abort.ts';
import type {
  Environment,
  EnvironmentProvider,
  InteractiveProcess,
} from '../../../src/environments/environment.ts';
import { shellQuote } from '../../../src/environments/shared/shell-quote.ts';
import { environmentSpec } from '../environment/environment-spec.ts';
import type { Egress, RunRequest, SandboxBody, SandboxRequest } from './sandbox-body.ts';

const run = promisify(execFile);

export class RealSandbox implements SandboxBody {
  readonly isLight = false;
  readonly files: Environment;
  readonly #environment: Environment;
  readonly #request: SandboxRequest;

  constructor(provider: EnvironmentProvider, request: SandboxRequest) {
    this.#request = request;
    this.#environment = provider.environment(
      environmentSpec(`hosted-${randomUUID().slice(0, 13)}`, {
        image: request.image,
        env: request.env ?? {},
        workdir: request.workdir ?? null,
        limits: {
          cpus: request.cpus ?? null,
          memoryMb: request.memoryMb ?? null,
          storageMb: request.storageMb ?? null,
          pids: null,
        },
        network: { mode: 'public' },
        laterNetworks: [{ mode: 'no-network' }], // so that it gets a network of its own
      }),
    );
    this.files = this.#environment;
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#environment.start({ signal });
    const { egress = 'all' } = this.#request;
    if (egress !== 'all') await this.setEgress(egress, signal);
  }

  run(request: RunRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    signal.throwIfAborted();
    return this.#environment.openProcess(
      {
        command: `exec ${request.argv.map(shellQuote).join(' ')}`,
        cwd: request.cwd ?? null,
        env: request.env ?? {},
        user: request.user ?? null,
        onOutput: request.onOutput,
      },
      never,
    );
  }

  async setEgress(egress: Egress, signal: AbortSignal): Promise<void> {
    const [first] = (await this.#environment.inspectProcesses(signal)) ?? [];
    if (first === undefined) throw new Error('a network is filtered while its sandbox runs');
    for (const family of ['4', '6'] as const)
      await filter(
        first.pid,
        family === '4' ? 'iptables-restore' : 'ip6tables-restore',
        rules(egress, family),
      );
  }

  isAlive(): Promise<boolean> {
    return this.#environment.isAlive(never);
  }

  stop(): Promise<void> {
    return this.#environment.stop(never);
  }

  async destroy(): Promise<void> {
    await this.#environment.destroy();
  }
}

function rules(egress: Egress, family: '4' | '6'): string {
  if (egress === 'all') return '*filter\n:OUTPUT ACCEPT\nCOMMIT\n';
  const cidrs = egress === 'none' ? [] : egress.cidrs;
  const own = cidrs.filter((cidr) => cidr.includes(':') === (family === '6'));
  const allowed = ['-o lo', ...own.map((cidr) => `-d ${cidr}`)];
  return `*filter\n:OUTPUT DROP\n${allowed.map((match) => `-A OUTPUT ${match} -j ACCEPT\n`).join('')}COMMIT\n`;
}

async function filter(pid: number, program: string, text: string): Promise<void> {
  const done = run('nsenter', ['--target', String(pid), '--net', program]);
  done.child.stdin?.end(text);
  await done;
}
