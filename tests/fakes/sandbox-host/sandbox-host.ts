/**
 * The ground that fakes of sandbox providers stand on: sandboxes that are made, run programs and end, and what every service does to its callers
 * (quotas, slowness, failures, lost answers, silent streams). A fake adds its service's words and wire format, and keeps its own records by id.
 */
import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../../../src/core/clock.ts';
import { LinkedAbort } from '../../../src/core/linked-abort.ts';
import type { EnvironmentProvider } from '../../../src/environments/environment.ts';
import { CreateMeter } from './create-meter.ts';
import { HostedSandbox } from './hosted-sandbox.ts';
import { LightSandbox, type AnswerRun } from './light-sandbox.ts';
import { RealSandbox } from './real-sandbox.ts';
import type { SandboxRequest } from './sandbox-body.ts';
import { ServiceFaults, type ServiceLimits } from './service-faults.ts';

export interface SandboxHostOptions {
  /** Makes real sandboxes, already preflighted; or light ones, and what their programs say. The host does not close a provider. */
  readonly sandboxes: EnvironmentProvider | { readonly answer?: AnswerRun };
  readonly limits?: Partial<ServiceLimits>;
  readonly faults?: ServiceFaults;
  readonly clock?: Clock;
}

export class SandboxHost implements AsyncDisposable {
  readonly clock: Clock;
  readonly faults: ServiceFaults;
  readonly meter: CreateMeter;
  readonly #sandboxes: SandboxHostOptions['sandboxes'];
  readonly #createMs: number;
  readonly #known = new Map<string, HostedSandbox>();
  readonly #ending = new LinkedAbort([]);

  constructor(options: SandboxHostOptions) {
    const limits = { liveSandboxes: null, createsPerSecond: null, createMs: 0, ...options.limits };
    this.clock = options.clock ?? systemClock;
    this.faults = options.faults ?? new ServiceFaults();
    this.meter = new CreateMeter(limits);
    this.#sandboxes = options.sandboxes;
    this.#createMs = limits.createMs;
  }

  /** Begins to make a sandbox; its `ready` says how that ends. Throws `CreateRefused` over a quota. */
  create(request: SandboxRequest): HostedSandbox {
    if (request.isFree !== true) this.meter.take(this.clock.monotonicMs(), this.#known.size);
    const sandbox = new HostedSandbox(randomUUID(), {
      body:
        'environment' in this.#sandboxes
          ? new RealSandbox(this.#sandboxes, request)
          : new LightSandbox(this.#sandboxes.answer),
      fails: request.isFree !== true && this.faults.strikes('failed-create'),
      wait: (signal) =>
        request.isFree === true ? Promise.resolve() : this.clock.sleep(this.#createMs, signal),
      hostEnding: this.#ending.signal,
      onRemoved: () => this.#known.delete(sandbox.id),
    });
    this.#known.set(sandbox.id, sandbox);
    return sandbox;
  }

  get(id: string): HostedSandbox | null {
    return this.#known.get(id) ?? null;
  }

  /** All that are not removed, the oldest first. */
  list(): readonly HostedSandbox[] {
    return [...this.#known.values()];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error('the service ends'));
    await Promise.all(this.list().map((sandbox) => sandbox.remove()));
  }
}
