/** A credential plugin of a kubeconfig: a program that prints an ExecCredential. Run when there is none, when it ends, and when it was refused. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import { messageOf, RolloutError } from '../../../core/errors.ts';
import { SingleFlight } from '../../../core/single-flight.ts';
import type { KubernetesPorts } from '../options.ts';
import type { Credentials } from './cluster-access.ts';

export interface PluginCommand {
  readonly apiVersion: string;
  /** Found on PATH, or absolute. */
  readonly command: string;
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

const schema = z.object({
  status: z.object({
    token: z.string().optional(),
    clientCertificateData: z.string().optional(),
    clientKeyData: z.string().optional(),
    expirationTimestamp: z.string().optional(),
  }),
});

const run = promisify(execFile);
const pluginMs = 60_000;
/** A credential is replaced this long before it ends. */
const marginMs = 60_000;

export class ExecPlugin {
  readonly #plugin: PluginCommand;
  readonly #ports: Pick<KubernetesPorts, 'hostVariables' | 'clock'>;
  readonly #flight = new SingleFlight<Credentials>();
  #last: { readonly credentials: Credentials; readonly endsMs: number } | null = null;

  constructor(plugin: PluginCommand, ports: Pick<KubernetesPorts, 'hostVariables' | 'clock'>) {
    this.#plugin = plugin;
    this.#ports = ports;
  }

  /** ENVIRONMENT_UNAVAILABLE when the plugin fails. */
  async credentials(options: {
    readonly isRefused: boolean;
    readonly signal: AbortSignal;
  }): Promise<Credentials> {
    const nowMs = this.#ports.clock.now().getTime();
    if (this.#last !== null && !options.isRefused && nowMs < this.#last.endsMs - marginMs)
      return this.#last.credentials;
    return await this.#flight.run('credentials', options.signal, (signal) => this.#ask(signal));
  }

  async #ask(signal: AbortSignal): Promise<Credentials> {
    const { apiVersion, command, args, variables } = this.#plugin;
    try {
      const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
      const { stdout } = await run(command, [...args], {
        env: {
          ...this.#ports.hostVariables,
          ...variables,
          KUBERNETES_EXEC_INFO: JSON.stringify(info),
        },
        timeout: pluginMs,
        maxBuffer: 1024 * 1024,
        signal,
      });
      const { status } = schema.parse(JSON.parse(stdout));
      const credentials = {
        token: status.token ?? null,
        cert: status.clientCertificateData ?? null,
        key: status.clientKeyData ?? null,
      };
      const ends = Date.parse(status.expirationTimestamp ?? '');
      this.#last = { credentials, endsMs: Number.isNaN(ends) ? Infinity : ends };
      return credentials;
    } catch (error) {
      signal.throwIfAborted();
      throw new RolloutError(
        'ENVIRONMENT_UNAVAILABLE',
        `the credential plugin ${command} of the kubeconfig failed: ${messageOf(error).slice(0, 500)}`,
        {
          phase: 'environment',
          cause: error,
          field: 'environment.kwargs.kubeconfig',
          remedy: 'Run "kubectl get pods" with this kubeconfig: it uses the same plugin.',
        },
      );
    }
  }
}
