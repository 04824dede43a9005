/** The rollout server composed in this process, in a folder of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { composeApp } from '../../src/app/compose.ts';
import type { AppPorts } from '../../src/app/ports.ts';
import { startServer, type RunningServer, type StartServerOptions } from '../../src/app/serve.ts';
import { RolloutController } from '../../src/callbacks/rollout-controller.ts';
import { readServeConfig, type ServeFlags } from '../../src/config/serve/read-serve-config.ts';
import { never } from '../../src/core/linked-abort.ts';

export class ServeFixture implements AsyncDisposable {
  readonly root: string;
  readonly ports: AppPorts;
  readonly #stack: AsyncDisposableStack;

  private constructor(root: string, ports: AppPorts) {
    this.root = root;
    this.ports = ports;
    this.#stack = new AsyncDisposableStack();
    this.#stack.defer(() => rm(root, { recursive: true, force: true }));
  }

  static async create(variables: Readonly<Record<string, string>> = {}): Promise<ServeFixture> {
    const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-serve-'));
    const own = { SLIPWAY_STATE_DIR: path.join(root, 'state'), HOME: root };
    return new ServeFixture(root, await composeApp({ ...variables, ...own }, root));
  }

  /** The null backend on free ports, unless `flags` say otherwise. Stopped with the fixture, at once. */
  async start(
    flags: ServeFlags = {},
    replace: StartServerOptions['replace'] = {},
  ): Promise<RunningServer> {
    const given = { '--backend': 'null', '--port': '0', '--drain-sec': '0', ...flags };
    const { '--drain-sec': drain, ...others } = given;
    const config = await readServeConfig(
      { ...others, '--shutdown-drain-sec': drain },
      this.ports.machine,
    );
    const server = await startServer(config, { ports: this.ports, signal: never, replace });
    this.#stack.defer(() => server.stop(never));
    return server;
  }

  async controller(
    options: ConstructorParameters<typeof RolloutController>[0],
  ): Promise<RolloutController> {
    const controller = new RolloutController(options);
    this.#stack.use(controller);
    await controller.start();
    return controller;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

export const prompt = [{ role: 'user', content: 'hello' }];

/** What a rollout of the null backend does. */
export function nullRollout(
  id: string,
  does: Readonly<Record<string, unknown>> = {},
): {
  readonly rollout_id: string;
  readonly initial_messages: typeof prompt;
  readonly metadata: { readonly null: Readonly<Record<string, unknown>> };
} {
  return { rollout_id: id, initial_messages: prompt, metadata: { null: does } };
}
