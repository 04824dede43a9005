/** The fields we read of the service's answers (`@daytona/api-client` and `@daytona/toolbox-api-client` have all of them). */
import { z } from 'zod';

export const sandboxAnswer = z.object({
  id: z.string(),
  name: z.string(),
  state: z.string().optional(),
  errorReason: z.string().nullish(),
  labels: z.record(z.string(), z.string()).default({}),
  toolboxProxyUrl: z.string().default(''),
});
export type SandboxAnswer = z.infer<typeof sandboxAnswer>;

export const sandboxList = z.object({
  items: z.array(sandboxAnswer),
  nextCursor: z.string().nullish(),
});

export const proxyUrl = z.object({ url: z.string() });
export const logsUrl = z.object({ url: z.url() });

export const snapshotAnswer = z.object({
  id: z.string(),
  name: z.string(),
  state: z.string(),
  errorReason: z.string().nullish(),
});
export type SnapshotAnswer = z.infer<typeof snapshotAnswer>;

export const pushAccess = z.object({
  accessKey: z.string(),
  secret: z.string(),
  sessionToken: z.string(),
  storageUrl: z.string(),
  organizationId: z.string(),
  bucket: z.string(),
  region: z.string().default('us-east-1'),
});
export type PushAccess = z.infer<typeof pushAccess>;

export const startedCommand = z.object({ cmdId: z.string() });
export const commandAnswer = z.object({ exitCode: z.number().nullish() });
export const executed = z.object({
  exitCode: z.number().nullish(),
  code: z.number().nullish(),
  result: z.string().default(''),
});
