import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { composeApp } from '../../src/app/compose.ts';
import type { AppPorts } from '../../src/app/ports.ts';
import { runJob, type JobEvent, type JobOutcome } from '../../src/app/run-job.ts';
import { RolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import type { EnvironmentProvider } from '../../src/environments/environment.ts';
import { FileSandboxJournalStore } from '../../src/store/file/file-sandbox-journal.ts';
import { jobConfigSchema } from '../../src/wire/harbor/job-config.ts';
import { FakeMachine } from '../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';

/** The real application, on a fake machine and in a folder of its own. */
export class AppFixture implements AsyncDisposable {
  readonly root: string;
  readonly machine = new FakeMachine();
  readonly events: JobEvent[] = [];
  readonly notes: string[] = [];
  readonly ports: AppPorts;
  /** Providers that were made and not closed. */
  openProviders = 0;

  private constructor(root: string, ports: AppPorts) {
    this.root = root;
    this.ports = {
      ...ports,
      environmentNames: ['fake'],
      resolveProvider: (name) =>
        name === 'fake'
          ? Promise.resolve(this.#provider())
          : Promise.reject(new RolloutError('ENVIRONMENT_UNKNOWN', name, { phase: 'config' })),
    };
  }

  /** `variables` are added to those that keep the application in its folder. */
  static async create(variables: Readonly<Record<string, string>> = {}): Promise<AppFixture> {
    const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-app-'));
    const own = {
      SLIPWAY_STATE_DIR: path.join(root, 'state'),
      SLIPWAY_CACHE_DIR: path.join(root, 'cache'),
    };
    return new AppFixture(root, await composeApp({ ...variables, ...own }, root));
  }

  get storeId(): Promise<string> {
    return this.journals().then(({ storeId }) => storeId);
  }

  journals(): Promise<FileSandboxJournalStore> {
    return FileSandboxJournalStore.open(this.ports.machine.stateDir, this.ports.locks);
  }

  async run(fields: Record<string, unknown>, signal: AbortSignal = never): Promise<JobOutcome> {
    const outcome = await runJob(
      {
        config: jobConfigSchema.parse({
          environment: { type: 'fake' },
          jobs_dir: path.join(this.root, 'jobs'),
          ...fields,
        }),
        sources: null,
        allowUnsandboxed: false,
        observe: (event) => void this.events.push(event),
        note: (text) => void this.notes.push(text),
        confirmVariables: () => Promise.resolve(true),
        signal,
      },
      this.ports,
    );
    if (outcome === null) throw new Error('the job was declined');
    return outcome;
  }

  #provider(): EnvironmentProvider {
    const provider = new FakeProvider(this.machine);
    this.openProviders += 1;
    provider.close = () => {
      this.openProviders -= 1;
      return Promise.resolve();
    };
    return provider;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }
}
