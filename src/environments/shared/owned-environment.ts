import { messageOf } from '../../core/errors.ts';
import type {
  ControlChannel,
  DestroyReceipt,
  DownloadOptions,
  Environment,
  ExecRequest,
  ExecResult,
  InteractiveProcess,
  KillReceipt,
  ProcessRequest,
  ProcessSnapshot,
  ServiceAccess,
  StartReport,
} from '../environment.ts';
import type { NetworkPolicy } from '../../wire/network-policy.ts';
import type { ProcessView } from '../../wire/rollout/process-view.ts';
import { recordGone, type Ownership } from './ownership.ts';

interface OwnedBy extends Ownership {
  readonly kind: string;
  readonly trial: string;
}

/**
 * An environment whose name is on disk before its creation is asked for. Order of a start: intent journalled, place in the creation
 * limiter, create, creation journalled. Order of an ending: removal confirmed, then journalled.
 */
export class OwnedEnvironment implements Environment {
  readonly #inner: Environment;
  readonly #by: OwnedBy;
  #intended: Promise<void> | null = null;

  constructor(inner: Environment, by: OwnedBy) {
    this.#inner = inner;
    this.#by = by;
  }

  get name(): string {
    return this.#inner.name;
  }

  get hostEndpointUrl(): string | null {
    return this.#inner.hostEndpointUrl;
  }

  async start(options: {
    readonly signal: AbortSignal;
    readonly onProgress?: (line: string) => void;
  }): Promise<StartReport> {
    options.signal.throwIfAborted();
    const { journal, limiter, clock, kind, trial } = this.#by;
    const intendedAt = clock.now().toISOString();
    this.#intended = journal.intend({ name: this.name, provider: kind, trial, intendedAt });
    await this.#intended;
    return await limiter.run(options.signal, async () => {
      const report = await this.#inner.start(options);
      await this.#recordCreated();
      return report;
    });
  }

  async destroy(options?: { readonly deadlineMs?: number }): Promise<DestroyReceipt> {
    const receipt = await this.#inner.destroy(options);
    if (this.#intended !== null) {
      await this.#intended.catch(() => undefined); // start has reported it
      await recordGone(this.#by, this.name);
    }
    return receipt;
  }

  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return this.#inner.exec(request, signal);
  }

  openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    return this.#inner.openControl(options);
  }

  openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    return this.#inner.openProcess(request, signal);
  }

  uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#inner.uploadFile(from, to, signal);
  }

  uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#inner.uploadDir(from, to, signal);
  }

  downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<void> {
    return this.#inner.downloadFile(from, to, signal, options);
  }

  downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<{ readonly skipped: readonly string[] }> {
    return this.#inner.downloadDir(from, to, signal, options);
  }

  isAlive(signal: AbortSignal): Promise<boolean> {
    return this.#inner.isAlive(signal);
  }

  snapshotProcesses(signal: AbortSignal): Promise<ProcessSnapshot> {
    return this.#inner.snapshotProcesses(signal);
  }

  killProcesses(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    return this.#inner.killProcesses(keep, signal);
  }

  inspectProcesses(signal: AbortSignal): Promise<readonly ProcessView[] | null> {
    return this.#inner.inspectProcesses(signal);
  }

  setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    return this.#inner.setNetworkPolicy(policy, signal);
  }

  service(name: string): ServiceAccess {
    return this.#inner.service(name);
  }

  stop(signal: AbortSignal): Promise<void> {
    return this.#inner.stop(signal);
  }

  /** An intent that stays `intended` in the journal is cleaned all the same, so this failure does not end the trial. */
  async #recordCreated(): Promise<void> {
    try {
      await this.#by.journal.created(this.name);
    } catch (error) {
      this.#by.logger.log('warn', 'creation of a sandbox was not journalled', {
        sandbox: this.name,
        cause: messageOf(error),
      });
    }
  }
}
