/** The fakes of all remote providers under one face: adapters of ours speak to each over its real wire, and its own list says what is there and whose it is. */
import type { Clock } from '../../../src/core/clock.ts';
import { DaytonaProvider } from '../../../src/environments/daytona/daytona-provider.ts';
import type { EnvironmentProvider } from '../../../src/environments/environment.ts';
import { foundSandbox } from '../../../src/environments/kubernetes/pods/names.ts';
import { decodeLabels, labelsVariable } from '../../../src/environments/skypilot/sky-names.ts';
import { SkypilotProvider } from '../../../src/environments/skypilot/skypilot-provider.ts';
import { DaytonaService, fakeKey } from '../../fakes/daytona/daytona-service.ts';
import { ClusterBench } from '../../fakes/kubernetes/cluster-bench.ts';
import { SandboxHost, type SandboxHostOptions } from '../../fakes/sandbox-host/sandbox-host.ts';
import { lightSkyAnswer, SkyServer } from '../../fakes/skypilot/sky-server.ts';

export const remoteKinds = ['daytona', 'kubernetes', 'skypilot'] as const;
export type RemoteKind = (typeof remoteKinds)[number];

/** A sandbox in the service's own list. */
export interface ServedSandbox {
  readonly name: string;
  /** From what it was made with; null = it is not ours. */
  readonly runId: string | null;
}

export interface FakeService extends AsyncDisposable {
  readonly kind: RemoteKind;
  readonly host: SandboxHost;
  /** By which the command line finds the service. */
  readonly variables: Readonly<Record<string, string>>;
  /** An adapter as one process has it; the caller preflights and closes it. */
  provider(clock: Clock): EnvironmentProvider;
  sandboxes(): readonly ServedSandbox[];
}

/** Without `sandboxes` they are light ones. */
export type FakeServiceOptions = Partial<SandboxHostOptions>;

const openers: Readonly<Record<RemoteKind, (options: FakeServiceOptions) => Promise<FakeService>>> =
  { daytona: openDaytona, kubernetes: openKubernetes, skypilot: openSkypilot };

export function openFakeService(
  kind: RemoteKind,
  options: FakeServiceOptions,
): Promise<FakeService> {
  return openers[kind](options);
}

async function openDaytona(options: FakeServiceOptions): Promise<FakeService> {
  const host = new SandboxHost({ sandboxes: {}, ...options });
  const service = await DaytonaService.start(host);
  const { apiUrl } = service;
  return {
    kind: 'daytona',
    host,
    variables: { DAYTONA_API_URL: apiUrl, DAYTONA_API_KEY: fakeKey },
    provider: (clock) => new DaytonaProvider({ apiUrl, apiKey: fakeKey }, { clock }),
    sandboxes: () =>
      service.sandboxes.map(({ name, request: { labels } }) => ({
        name,
        runId: labels?.['slipway.run'] ?? null,
      })),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

async function openKubernetes(options: FakeServiceOptions): Promise<FakeService> {
  const bench = await ClusterBench.open({ host: { sandboxes: {}, ...options } });
  const { pods, networkpolicies } = bench.cluster.stores;
  return {
    kind: 'kubernetes',
    host: bench.host,
    variables: { KUBECONFIG: bench.kubeconfig },
    provider: (clock) => bench.provider({}, { clock }),
    sandboxes: () =>
      [...pods.list(), ...networkpolicies.list()].map((object) => ({
        name: object.metadata.name,
        runId: foundSandbox(object)?.labels.runId ?? null,
      })),
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  };
}

async function openSkypilot(options: FakeServiceOptions): Promise<FakeService> {
  const isLight = options.sandboxes === undefined;
  const host = new SandboxHost({ sandboxes: { answer: lightSkyAnswer }, ...options });
  const server = await SkyServer.start({ host, isLight });
  const { variables, platform } = server;
  return {
    kind: 'skypilot',
    host,
    variables,
    provider: (clock) => new SkypilotProvider({}, { hostVariables: variables, clock }),
    sandboxes: () =>
      (platform.list() as readonly { readonly name: string }[]).map(({ name }) => {
        const asked = platform.asked.findLast((each) => each.name === name);
        const labels = decodeLabels(asked?.env?.[labelsVariable] ?? '')?.labels;
        return { name, runId: labels?.runId ?? null };
      }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
