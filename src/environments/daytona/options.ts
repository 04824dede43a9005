import { z } from 'zod';
import { systemClock, type Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import { silentLogger, type Logger } from '../../core/logger.ts';

const schema = z.strictObject({
  apiUrl: z.url({ protocol: /^https?$/ }).default('https://app.daytona.io/api'),
  apiKey: z.string().min(1).nullable().default(null),
  jwtToken: z.string().min(1).nullable().default(null),
  organizationId: z.string().min(1).nullable().default(null),
  target: z.string().min(1).nullable().default(null),
  user: z.string().min(1).default('root'),
  snapshotTemplateName: z.string().min(1).nullable().default(null),
  autoSnapshot: z.boolean().default(true),
  labels: z
    .record(z.string(), z.string())
    .refine(
      (labels) => Object.keys(labels).every((key) => !key.startsWith('slipway.')),
      'labels that begin with "slipway." are our own',
    )
    .default({}),
  secrets: z.record(z.string(), z.string()).default({}),
  autoStopIntervalMins: z.number().int().nonnegative().default(0),
  autoDeleteIntervalMins: z.number().int().nonnegative().default(0),
  createTimeoutMs: z.number().int().positive().default(600_000),
  buildTimeoutMs: z.number().int().positive().default(3_600_000),
  pollMs: z.number().int().positive().default(1_000),
  silenceMs: z.number().int().positive().default(15_000),
  imageArchivesDir: z.string().nullable().default(null),
  extraCaBundle: z.string().nullable().default(null),
});

/** What a user sets; see {@link CompiledDaytonaOptions} for the meaning of each. */
export type DaytonaOptions = z.input<typeof schema>;

export interface CompiledDaytonaOptions {
  /** Base URL of the API (`DAYTONA_API_URL`). */
  readonly apiUrl: string;
  /** `DAYTONA_API_KEY`; or a token (`DAYTONA_JWT_TOKEN`) with its organisation (`DAYTONA_ORGANIZATION_ID`). */
  readonly apiKey: string | null;
  readonly jwtToken: string | null;
  readonly organizationId: string | null;
  /** Region (`DAYTONA_TARGET`); null = the organisation's default. */
  readonly target: string | null;
  /** User of the sandbox's own programs. Root is needed for files of root, for commands as other users and for stopping agents. */
  readonly user: string;
  /** A snapshot that stands in for the image; `{name}` is the last part of the task's image reference or folder. */
  readonly snapshotTemplateName: string | null;
  /** Images become snapshots, named by their content, that later sandboxes start from. */
  readonly autoSnapshot: boolean;
  /** More labels on every sandbox. */
  readonly labels: Readonly<Record<string, string>>;
  /** Environment variable → name of an organisation's secret. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Minutes without activity until the provider stops a sandbox; 0 = never, the expiry ends it. */
  readonly autoStopIntervalMins: number;
  /** Minutes from stopped to deleted; 0 = at once. */
  readonly autoDeleteIntervalMins: number;
  readonly createTimeoutMs: number;
  readonly buildTimeoutMs: number;
  /** Between two looks at something that is being made. */
  readonly pollMs: number;
  /** A stream that is silent for this long is checked against what the sandbox says of its command. */
  readonly silenceMs: number;
  /** Not used: images are made by the provider. */
  readonly imageArchivesDir: string | null;
  /** PEM file brought into sandboxes whose spec names none; null = none. */
  readonly extraCaBundle: string | null;
}

/** CONFIG_INVALID lists every problem. */
export function compileDaytonaOptions(options: DaytonaOptions): CompiledDaytonaOptions {
  const parsed = schema.safeParse(options);
  if (parsed.success) return Object.freeze(parsed.data);
  throw new RolloutError(
    'CONFIG_INVALID',
    `options of the daytona environment: ${z.prettifyError(parsed.error)}`,
    {
      phase: 'config',
      field: parsed.error.issues.map((issue) => issue.path.join('.')).join(', '),
    },
  );
}

/** Collaborators of the daytona environment. */
export interface DaytonaPorts {
  readonly clock: Clock;
  readonly logger: Logger;
}

export function daytonaPorts(ports: Partial<DaytonaPorts>): DaytonaPorts {
  return { clock: systemClock, logger: silentLogger, ...ports };
}
