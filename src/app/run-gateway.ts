/**
 * The gateway of a run on this machine, for agents that speak from inside their sandbox: it listens on the loopback from the first of them on, once for each
 * kind of engine that is behind it. Each trial has a key of its own, which dies with it; the key of the model stays here. Calls are kept in the trial's
 * folder.
 */
import { randomUUID } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { OpenRoute } from '../agents/agent.ts';
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { EngineKind, EngineOpener } from '../engines/engine.ts';
import { capturedCallsName } from '../gateway/capture/file-capture.ts';
import { sampledCalls } from '../gateway/capture/read-calls.ts';
import type { SampledCall } from '../trajectory/token-ids.ts';
import type { TrialRouteOpener } from '../trial/trial-options.ts';
import { ListeningGateway } from './listening-gateway.ts';
import { TrialCaptures } from './trial-captures.ts';

export interface RunGatewayParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly openEngine: EngineOpener;
  /** Port of the first gateway, the next ones of the others; null or absent = any. */
  readonly firstPort?: number | null;
}

export class RunGateway implements AsyncDisposable {
  readonly #parts: RunGatewayParts;
  readonly #captures: TrialCaptures;
  readonly #gateways = new Map<EngineKind | null, ListeningGateway>();

  constructor(parts: RunGatewayParts) {
    this.#parts = parts;
    this.#captures = new TrialCaptures(parts);
  }

  /** MODEL_UNSPECIFIED, or CONFIG_INVALID for an address that is none. */
  readonly open: TrialRouteOpener = async (upstream, { dir, secrets }): Promise<OpenRoute> => {
    const { engineKind, isCaptured, baseUrl, apiKey } = upstream;
    const gateway = this.#gatewayFor(isCaptured ? engineKind : null);
    const rolloutId = randomUUID();
    if (isCaptured) this.#captures.expect(rolloutId, { dir: path.join(dir, draftDir), secrets });
    const route = await gateway.register({
      rolloutId,
      upstreamUrl: baseUrl,
      upstreamKey: apiKey,
    });
    return {
      ...route,
      calls: () => this.#callsOf(rolloutId),
      close: async () => {
        await gateway.control.abort(rolloutId);
        await this.#keep(rolloutId, { dir, gateway });
      },
    };
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#gateways.values()].map((one) => one[Symbol.asyncDispose]()));
  }

  /** `kind` null = calls are not kept. */
  #gatewayFor(kind: EngineKind | null): ListeningGateway {
    const found = this.#gateways.get(kind);
    if (found !== undefined) return found;
    const kept = kind === null ? {} : { engineKind: kind, capture: this.#captures };
    const { firstPort = null, ...parts } = this.#parts;
    const port = firstPort === null ? 0 : firstPort + this.#gateways.size;
    const made = new ListeningGateway({ ...parts, ...kept, port });
    this.#gateways.set(kind, made);
    return made;
  }

  async #callsOf(rolloutId: string): Promise<readonly SampledCall[]> {
    try {
      const file = await this.#captures.fileSoFar(rolloutId);
      return file === null ? [] : await sampledCalls(file);
    } catch (error) {
      this.#warn('captured model calls cannot be read', error);
      return [];
    }
  }

  async #keep(
    rolloutId: string,
    { dir, gateway }: { readonly dir: string; readonly gateway: ListeningGateway },
  ): Promise<void> {
    try {
      const file = await gateway.control.captured(rolloutId);
      if (file !== null) await rename(file, path.join(dir, capturedCallsName));
      await gateway.control.forget(rolloutId);
      await rm(path.join(dir, draftDir), { recursive: true, force: true });
    } catch (error) {
      this.#warn('captured model calls were not kept', error);
    } finally {
      this.#captures.done(rolloutId);
    }
  }

  #warn(what: string, error: unknown): void {
    this.#parts.logger.log('warn', what, { error: messageOf(error) });
  }
}

/** While the trial runs: a run that is killed leaves what it has in the folder of the trial. */
const draftDir = '.model-calls';
