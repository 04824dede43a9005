/** Sandboxes in memory, each row on a machine of its own, so that what is planted for one strikes no other. */
import type {
  DestroyReceipt,
  Environment,
  EnvironmentSpec,
} from '../../../src/environments/environment.ts';
import { FakeMachine } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';

export class MachinePerRow extends FakeProvider {
  readonly #providers = new Map<string, FakeProvider>();

  /** The machine of the rollouts whose sandboxes have the row's name in theirs. */
  machineOf(row: string): FakeMachine {
    const machine = new FakeMachine();
    this.#providers.set(row, new FakeProvider(machine));
    return machine;
  }

  override environment(spec: EnvironmentSpec): Environment {
    return this.#of(spec.name).environment(spec);
  }

  override destroyByName(
    name: string,
    options?: { readonly deadlineMs?: number },
  ): Promise<DestroyReceipt> {
    return this.#of(name).destroyByName(name, options);
  }

  /** Sandboxes that are there, of all rows. */
  get left(): readonly string[] {
    return [...this.#providers.values()].flatMap(({ machine }) => [...machine.sandboxes.keys()]);
  }

  #of(sandbox: string): FakeProvider {
    const [row] = [...this.#providers.keys()]
      .filter((name) => sandbox.includes(name))
      .sort((a, b) => b.length - a.length);
    const provider = this.#providers.get(row ?? '');
    if (provider === undefined) throw new TypeError(`no row has the sandbox ${sandbox}`);
    return provider;
  }
}
