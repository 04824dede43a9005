import { z } from 'zod';

/** The fields of the engine's answers that we use; everything else is ignored. */
export const containerDetails = z.object({
  Id: z.string(),
  Image: z.string().default(''),
  Config: z
    .object({
      Labels: z.record(z.string(), z.string()).nullish(),
      WorkingDir: z.string().nullish(),
    })
    .default({}),
  State: z.object({
    Running: z.boolean().default(false),
    Paused: z.boolean().default(false),
    OOMKilled: z.boolean().nullish(),
    Pid: z.number().default(0),
    ExitCode: z.number().nullish(),
    Error: z.string().nullish(),
  }),
});
export type ContainerDetails = z.output<typeof containerDetails>;

export const createdId = z.object({ Id: z.string() });

export const execDetails = z.object({
  Running: z.boolean(),
  ExitCode: z.number().nullish(),
});

const labelled = { Labels: z.record(z.string(), z.string()).nullish() };
export const containerList = z.array(z.object({ Id: z.string(), ...labelled }));
export const networkList = z.array(z.object({ Id: z.string(), Name: z.string(), ...labelled }));
export const volumeList = z.object({
  Volumes: z.array(z.object({ Name: z.string(), ...labelled })).nullish(),
});

export const networkDetails = z.object({
  Id: z.string(),
  Labels: z.record(z.string(), z.string()).nullish(),
  IPAM: z
    .object({
      Config: z
        .array(z.object({ Subnet: z.string().nullish(), Gateway: z.string().nullish() }))
        .nullish(),
    })
    .nullish(),
  Containers: z.record(z.string(), z.unknown()).nullish(),
});

export const engineSettings = z.object({
  OSType: z.string().default('linux'),
  Name: z.string().default(''),
  MemoryLimit: z.boolean().default(true),
  CpuCfsQuota: z.boolean().default(true),
  PidsLimit: z.boolean().default(true),
  NCPU: z.number().default(0),
});

/** One line of a progress stream (pull, build, load). */
export const progressLine = z.object({
  stream: z.string().optional(),
  status: z.string().optional(),
  id: z.string().optional(),
  error: z.string().optional(),
});
