import type {
  DestroyReceipt,
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  FoundSandbox,
} from '../../../src/environments/environment.ts';
import { destroyNow, FakeEnvironment } from './fake-environment.ts';
import { FakeMachine } from './fake-machine.ts';

/** Sandboxes in memory. Providers of one machine see the same sandboxes, as processes on one host do. */
export class FakeProvider implements EnvironmentProvider {
  readonly isolation = 'none';
  readonly machine: FakeMachine;

  constructor(machine = new FakeMachine()) {
    this.machine = machine;
  }

  get kind(): string {
    return this.machine.kind;
  }

  get capabilities(): EnvironmentCapabilities {
    return this.machine.capabilities;
  }

  async preflight(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
  }

  environment(spec: EnvironmentSpec): Environment {
    return new FakeEnvironment(spec, this.machine);
  }

  destroyByName(
    name: string,
    { deadlineMs = 30_000 }: { readonly deadlineMs?: number } = {},
  ): Promise<DestroyReceipt> {
    return destroyNow(this.machine, name, deadlineMs);
  }

  async list(signal: AbortSignal): Promise<readonly FoundSandbox[]> {
    signal.throwIfAborted();
    await this.machine.faults.strike('list', '', { signal, lose: () => undefined });
    return [...this.machine.sandboxes.values()].map(({ spec: { name, labels } }) => ({
      name,
      labels,
    }));
  }

  async close(): Promise<void> {
    // Holds nothing itself.
  }
}
