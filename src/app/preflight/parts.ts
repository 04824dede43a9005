import type { ServeConfig, ServeFlags } from '../../config/serve/read-serve-config.ts';
import type { SecretSources } from '../../config/serve/read-secrets.ts';
import type { SecretMask } from '../../telemetry/secret-mask.ts';
import type { PreflightCheckName } from '../../wire/preflight-report.ts';
import type { AppPorts } from '../ports.ts';
import type { CheckObserver, CheckRun } from './check-run.ts';

export interface PreflightOptions {
  readonly serve: ServeFlags;
  /** As in `metadata.harbor_task`, folders, or whole metadata objects as JSON. */
  readonly tasks: readonly string[];
  /** Rows whose metadata name tasks; absolute, null = none. */
  readonly datasetFile: string | null;
  readonly modelUrl: string | null;
  /** Absolute; null = the key is in OPENAI_API_KEY, if there is one. */
  readonly modelKeyFile: string | null;
  readonly callbackUrls: readonly string[];
  /** A workflow without a grader is meant. */
  readonly needsNoGrader: boolean;
  /** Only these, with what they need; null = all. */
  readonly only: readonly PreflightCheckName[] | null;
  readonly observer?: CheckObserver;
}

/** For what is answered at once, or not at all. */
export const quickMs = 15_000;

/** What the checks share. */
export interface PreflightParts {
  readonly options: PreflightOptions;
  readonly ports: AppPorts;
  readonly run: CheckRun;
  readonly mask: SecretMask;
  readonly wants: (name: PreflightCheckName) => boolean;
}

export function sourcesOf({ baseDir }: ServeConfig, { machine }: AppPorts): SecretSources {
  return { variables: machine.variables, baseDir };
}
