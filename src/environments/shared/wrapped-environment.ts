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

/** An environment that does all as the one inside does, for wrappers that change a few members. */
export abstract class WrappedEnvironment implements Environment {
  protected abstract readonly inner: Environment;

  get name(): string {
    return this.inner.name;
  }

  get hostEndpointUrl(): string | null {
    return this.inner.hostEndpointUrl;
  }

  start(options: StartOptions): Promise<StartReport> {
    return this.inner.start(options);
  }

  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return this.inner.exec(request, signal);
  }

  openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    return this.inner.openControl(options);
  }

  openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    return this.inner.openProcess(request, signal);
  }

  uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.inner.uploadFile(from, to, signal);
  }

  uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.inner.uploadDir(from, to, signal);
  }

  downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<void> {
    return this.inner.downloadFile(from, to, signal, options);
  }

  downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<{ readonly skipped: readonly string[] }> {
    return this.inner.downloadDir(from, to, signal, options);
  }

  isAlive(signal: AbortSignal): Promise<boolean> {
    return this.inner.isAlive(signal);
  }

  snapshotProcesses(signal: AbortSignal): Promise<ProcessSnapshot> {
    return this.inner.snapshotProcesses(signal);
  }

  killProcesses(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    return this.inner.killProcesses(keep, signal);
  }

  inspectProcesses(signal: AbortSignal): Promise<readonly ProcessView[] | null> {
    return this.inner.inspectProcesses(signal);
  }

  setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    return this.inner.setNetworkPolicy(policy, signal);
  }

  service(name: string): ServiceAccess {
    return this.inner.service(name);
  }

  stop(signal: AbortSignal): Promise<void> {
    return this.inner.stop(signal);
  }

  destroy(options?: { readonly deadlineMs?: number }): Promise<DestroyReceipt> {
    return this.inner.destroy(options);
  }
}

export type StartOptions = Parameters<Environment['start']>[0];
