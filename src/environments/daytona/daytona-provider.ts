import { RolloutError } from '../../core/errors.ts';
import type {
  DestroyReceipt,
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  FoundSandbox,
} from '../environment.ts';
import { ApiClient } from './api/api-client.ts';
import { apiFailure } from './api/api-error.ts';
import { sandboxList } from './api/answers.ts';
import { DaytonaEnvironment } from './daytona-environment.ts';
import { DaytonaImages } from './images/snapshots.ts';
import {
  compileDaytonaOptions,
  daytonaPorts,
  type CompiledDaytonaOptions,
  type DaytonaOptions,
  type DaytonaPorts,
} from './options.ts';
import { fullQuotas } from './quota.ts';
import { defaultDestroyMs, removeSandbox } from './removal.ts';
import type { BootParts } from './sandbox-boot.ts';
import { labelKeys, ownLabels } from './sandbox-names.ts';

const preflightLimitMs = 20_000;
const pageSize = 100;
const lateCreateMs = 1_000;

const capabilities: EnvironmentCapabilities = {
  compose: false,
  cpuLimit: true,
  memoryLimit: true,
  pidsLimit: false,
  diskQuota: true,
  gpus: false,
  tpus: false,
  users: true,
  noNetwork: true,
  allowlist: true,
  dynamicNetworkPolicy: true,
  hostEndpoint: false,
  layers: false,
  build: true,
  windows: false,
};

/** Sandboxes of Daytona, by its REST API and the toolbox in each sandbox. */
export class DaytonaProvider implements EnvironmentProvider {
  readonly kind = 'daytona';
  readonly isolation = 'strict';
  readonly isRemote = true;
  readonly capabilities = capabilities;
  readonly #options: CompiledDaytonaOptions;
  readonly #parts: BootParts;
  readonly #images: DaytonaImages;
  #isReady = false;

  constructor(options: DaytonaOptions, ports: Partial<DaytonaPorts> = {}) {
    this.#options = compileDaytonaOptions(options);
    const whole = daytonaPorts(ports);
    const api = new ApiClient(this.#options, whole.clock);
    this.#parts = { api, options: this.#options, ports: whole };
    this.#images = new DaytonaImages(api, this.#options, whole);
  }

  async preflight(signal: AbortSignal): Promise<void> {
    if (this.#isReady) return;
    const { apiKey, jwtToken, organizationId } = this.#options;
    if (apiKey === null && (jwtToken === null || organizationId === null))
      throw new RolloutError('ENVIRONMENT_UNAVAILABLE', 'there are no credentials for Daytona', {
        phase: 'environment',
        field: 'DAYTONA_API_KEY',
        remedy: 'Set DAYTONA_API_KEY, or DAYTONA_JWT_TOKEN and DAYTONA_ORGANIZATION_ID.',
      });
    try {
      const query = { limit: 1, labels: JSON.stringify({ [labelKeys.managed]: 'true' }) };
      const asked = { method: 'GET', signal, limitMs: preflightLimitMs } as const;
      sandboxList.parse(await this.#parts.api.json({ ...asked, url: '/sandbox', query }));
      await this.#checkQuota(signal);
      this.#isReady = true;
    } catch (error) {
      signal.throwIfAborted();
      throw apiFailure(error, {
        code: 'ENVIRONMENT_UNAVAILABLE',
        phase: 'environment',
        what: `Daytona at ${this.#options.apiUrl}`,
      });
    }
  }

  environment(spec: EnvironmentSpec): Environment {
    return new DaytonaEnvironment(spec, { ...this.#parts, images: this.#images });
  }

  destroyByName(
    name: string,
    options: { readonly deadlineMs?: number } = {},
  ): Promise<DestroyReceipt> {
    const deadlineMs = options.deadlineMs ?? defaultDestroyMs;
    return removeSandbox(this.#parts, name, { deadlineMs, looksAgainMs: lateCreateMs });
  }

  async list(signal: AbortSignal): Promise<readonly FoundSandbox[]> {
    const labels = JSON.stringify({ [labelKeys.managed]: 'true' });
    const found: FoundSandbox[] = [];
    try {
      for (let cursor: string | undefined; ;) {
        const query = { labels, limit: pageSize, cursor };
        const asked = { method: 'GET', url: '/sandbox', query, signal } as const;
        const page = sandboxList.parse(await this.#parts.api.json(asked));
        for (const sandbox of page.items) {
          const own = ownLabels(sandbox.labels);
          if (own !== null && sandbox.state !== 'destroyed') found.push(own);
        }
        cursor = page.nextCursor ?? undefined;
        if (cursor === undefined || page.items.length === 0) return found;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw apiFailure(error, {
        code: 'ENVIRONMENT_UNAVAILABLE',
        phase: 'cleanup',
        what: 'listing sandboxes',
      });
    }
  }

  async close(): Promise<void> {
    await this.#parts.api.close();
  }

  /** Says before a run what would end it in the middle: a quota that is used up. A key that may not look at usage is no failure. */
  async #checkQuota(signal: AbortSignal): Promise<void> {
    const full = await fullQuotas(this.#parts, signal);
    if (full.length > 0)
      throw new RolloutError(
        'ENVIRONMENT_UNAVAILABLE',
        `the quota of the organisation is used up: ${full.join(', ')}`,
        {
          phase: 'environment',
          retryable: true,
          remedy: 'Remove sandboxes ("slipway cleanup --env daytona"), or ask for a larger quota.',
        },
      );
  }
}
