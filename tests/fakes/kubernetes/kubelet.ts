/** What the rest of a cluster does with a pod: it gets a node, its image is pulled, its container runs, a network plugin filters it, and it ends. */
import type { Clock } from '../../../src/core/clock.ts';
import { isRolloutError, messageOf } from '../../../src/core/errors.ts';
import type { HostedSandbox } from '../sandbox-host/hosted-sandbox.ts';
import type { Egress } from '../sandbox-host/sandbox-body.ts';
import type { SandboxHost } from '../sandbox-host/sandbox-host.ts';
import type { ApiObject, ObjectStore } from './object-store.ts';
import type { ContainerSpec, PodSpec, PolicySpec } from './validation.ts';

export interface KubeletParts {
  readonly host: SandboxHost;
  readonly pods: ObjectStore;
  readonly policies: ObjectStore;
  readonly clock: Clock;
  /** Variables of every container: where the API server is. */
  readonly serviceVariables: () => Readonly<Record<string, string>>;
  /** The network plugin enforces policies. */
  readonly enforcesPolicies: boolean;
}

/** Of a timer. */
const longestMs = 2 ** 31 - 1;

export class Kubelet {
  readonly #parts: KubeletParts;
  readonly #sandboxes = new Map<string, HostedSandbox>();

  constructor(parts: KubeletParts) {
    this.#parts = parts;
  }

  /** The sandbox of a pod whose container runs. */
  running(name: string): HostedSandbox | null {
    const sandbox = this.#sandboxes.get(name);
    return sandbox?.state === 'running' ? sandbox : null;
  }

  /** Throws `CreateRefused` over a quota of the host; else the pod, once it is stored, comes up with what is returned, or says why not. */
  take(pod: ApiObject): () => void {
    const { containers, activeDeadlineSeconds } = pod['spec'] as PodSpec;
    const [container] = containers;
    if (container === undefined) throw new Error('validated before');
    const { cpu, memory } = container.resources?.limits ?? {};
    const sandbox = this.#parts.host.create({
      image: { kind: 'prebuilt', reference: container.image },
      env: { ...this.#parts.serviceVariables(), ...environmentOf(container) },
      workdir: container.workingDir ?? null,
      cpus: cpu === undefined ? null : cpusOf(cpu),
      memoryMb: memory === undefined ? null : Number(memory.replace('Mi', '')),
      egress: this.#egressOf(pod),
    });
    this.#sandboxes.set(pod.metadata.name, sandbox);
    return () =>
      void this.#bringUp(pod.metadata.name, { sandbox, container, activeDeadlineSeconds });
  }

  /** After a policy came, changed or went: pods that it selects are filtered anew. */
  async filter(policy: ApiObject): Promise<void> {
    const pods = this.#parts.pods.list().filter((pod) => isSelected(pod, policy));
    await Promise.all(
      pods.map(async (pod) => this.running(pod.metadata.name)?.setEgress(this.#egressOf(pod))),
    );
  }

  /** Ends the container and then the pod. */
  async evict(name: string): Promise<void> {
    await this.#sandboxes.get(name)?.remove();
    this.#sandboxes.delete(name);
    this.#parts.pods.remove(name);
  }

  async #bringUp(
    name: string,
    of: {
      readonly sandbox: HostedSandbox;
      readonly container: ContainerSpec;
      readonly activeDeadlineSeconds: number | undefined;
    },
  ): Promise<void> {
    const { sandbox, container } = of;
    this.#status(name, {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'True' }],
      containerStatuses: [statusOf(container, { waiting: { reason: 'ContainerCreating' } })],
    });
    try {
      await sandbox.ready;
    } catch (error) {
      const isImage = isRolloutError(error, 'IMAGE_NOT_FOUND');
      this.#status(name, {
        phase: isImage ? 'Pending' : 'Failed',
        ...(!isImage && { reason: 'UnexpectedAdmissionError', message: messageOf(error) }),
        containerStatuses: [
          statusOf(container, {
            waiting: {
              reason: isImage ? 'ErrImagePull' : 'ContainerCreating',
              message: `failed to resolve reference: ${container.image}: not found`,
            },
          }),
        ],
      });
      return;
    }
    await this.#run(name, of);
  }

  /** The container's own process; its end is the pod's. */
  async #run(
    name: string,
    {
      sandbox,
      container,
      activeDeadlineSeconds,
    }: {
      readonly sandbox: HostedSandbox;
      readonly container: ContainerSpec;
      readonly activeDeadlineSeconds: number | undefined;
    },
  ): Promise<void> {
    const argv = (container.command ?? ['sh']).map((word) => expanded(word, {}));
    const ended = (exitCode: number, reason: string): void =>
      this.#status(name, {
        phase: exitCode === 0 ? 'Succeeded' : 'Failed',
        reason,
        containerStatuses: [statusOf(container, { terminated: { exitCode, reason } })],
      });
    try {
      const main = await sandbox.run({ argv, onOutput: () => undefined });
      if (!sandbox.isLight) void main.exited.then((code) => ended(code ?? 137, 'Error'));
    } catch (error) {
      ended(128, `StartError: ${messageOf(error)}`);
      return;
    }
    this.#status(name, {
      phase: 'Running',
      conditions: [
        { type: 'PodScheduled', status: 'True' },
        { type: 'Ready', status: 'True' },
      ],
      containerStatuses: [
        statusOf(container, { running: { startedAt: new Date().toISOString() } }),
      ],
    });
    if (activeDeadlineSeconds !== undefined) void this.#endAt(name, sandbox, activeDeadlineSeconds);
  }

  async #endAt(name: string, sandbox: HostedSandbox, seconds: number): Promise<void> {
    await this.#parts.clock
      .sleep(Math.min(seconds * 1000, longestMs), sandbox.ending)
      .catch(() => undefined); // it ended before
    if (sandbox.state !== 'running') return;
    await sandbox.stop();
    this.#status(name, { phase: 'Failed', reason: 'DeadlineExceeded' });
  }

  #status(name: string, status: object): void {
    const pod = this.#parts.pods.get(name);
    if (pod !== null) this.#parts.pods.change({ ...pod, status });
  }

  #egressOf(pod: ApiObject): Egress {
    if (!this.#parts.enforcesPolicies) return 'all';
    const specs = this.#parts.policies
      .list()
      .filter((policy) => isSelected(pod, policy))
      .map((policy) => policy['spec'] as PolicySpec)
      .filter(({ policyTypes = [] }) => policyTypes.includes('Egress'));
    if (specs.length === 0) return 'all';
    const rules = specs.flatMap(({ egress = [] }) => egress);
    if (rules.some(({ to }) => to === undefined)) return 'all';
    const cidrs = rules.flatMap(({ to = [] }) =>
      to.flatMap(({ ipBlock }) => (ipBlock === undefined ? [] : [ipBlock.cidr])),
    );
    return cidrs.length === 0 ? 'none' : { cidrs };
  }
}

function isSelected(pod: ApiObject, policy: ApiObject): boolean {
  const { matchLabels = {} } = (policy['spec'] as PolicySpec).podSelector;
  const labels = pod.metadata.labels ?? {};
  return Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
}

function statusOf(container: ContainerSpec, state: object): object {
  const ready = 'running' in state;
  return {
    name: container.name,
    image: container.image,
    imageID: '',
    ready,
    restartCount: 0,
    state,
  };
}

/** Variables in order, each seen by those behind it. */
function environmentOf(container: ContainerSpec): Readonly<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const { name, value = '' } of container.env ?? []) values[name] = expanded(value, values);
  return values;
}

/** `$(NAME)` is replaced where the name is known, a doubled dollar is one, and any other dollar stays. */
export function expanded(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\$(\$|\(([^)]*)\))/g, (whole, mark: string, name: string | undefined) =>
    mark === '$' ? '$' : (values[name ?? ''] ?? whole),
  );
}

function cpusOf(amount: string): number {
  return amount.endsWith('m') ? Number(amount.slice(0, -1)) / 1000 : Number(amount);
}
