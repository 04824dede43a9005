import type { EnvironmentSpec, ResourceLimits } from '../environment.ts';
import { keepAliveCommand } from './processes/process-control.ts';
import { engineLabels } from './sandbox-names.ts';

export interface ContainerRequest {
  readonly spec: EnvironmentSpec;
  readonly image: string;
  /** `none`, `bridge`, or the name of the sandbox's own network. */
  readonly networkMode: string;
  readonly variables: Readonly<Record<string, string>>;
  /** Never public: names are resolved by the egress proxy, not in the sandbox. */
  readonly isSecluded: boolean;
  /** Processors of the engine's machine; it refuses limits above. */
  readonly engineCpus: number;
}

/**
 * A name server that does not exist: the engine's own resolver would otherwise ask the host's name servers, also for a sandbox on an
 * internal network. It answers names of services itself; for others it is silent, so programs are told not to wait long.
 */
export const noNameServer = '240.0.0.1';
export const noNameOptions = ['timeout:1', 'attempts:1'];

/** Body of the engine's create call. The image's ENTRYPOINT is kept: it runs with the keep-alive command as its arguments. */
export function containerSettings(request: ContainerRequest): Record<string, unknown> {
  const { spec, variables } = request;
  return {
    Image: request.image,
    Cmd: ['sh', '-c', keepAliveCommand],
    Env: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    // The image's own health check would start processes at any moment, also while the agent's are being killed.
    Healthcheck: { Test: ['NONE'] },
    Labels: engineLabels(spec.name, spec.labels),
    ...(spec.workdir === null ? {} : { WorkingDir: spec.workdir }),
    HostConfig: {
      Init: true,
      NetworkMode: request.networkMode,
      Mounts: spec.layers.map(({ hostDir, at }) => ({
        ...{ Type: 'bind', Source: hostDir, Target: at, ReadOnly: true },
      })),
      ...(request.isSecluded
        ? { Dns: [noNameServer], DnsOptions: noNameOptions, DnsSearch: ['.'] }
        : {}),
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '1' } },
      ...limitSettings(spec.limits, request.engineCpus),
    },
  };
}

function limitSettings(limits: ResourceLimits, engineCpus: number): Record<string, number> {
  const memory = limits.memoryMb === null ? null : Math.round(limits.memoryMb * 1024 * 1024);
  const cpus =
    limits.cpus === null ? null : Math.min(limits.cpus, engineCpus > 0 ? engineCpus : limits.cpus);
  return {
    ...(cpus === null ? {} : { NanoCpus: Math.round(cpus * 1e9) }),
    // Swap equal to memory means no swap: a limit that swaps is no limit and slows the host.
    ...(memory === null ? {} : { Memory: memory, MemorySwap: memory }),
    ...(limits.pids === null ? {} : { PidsLimit: limits.pids }),
  };
}
