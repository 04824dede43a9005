/** The backend `native` with agent classes on the package `harbor`, unchanged, by either binding and in each environment of this machine. */
import { RolloutController } from '../../../src/callbacks/rollout-controller.ts';
import {
  answerYes,
  bindings,
  openHarborBench,
} from '../../integration/harbor-agents/harbor-bench.ts';
import { realProviders } from '../../support/real-providers.ts';
import type { Answer } from '../../fakes/chat-upstream.ts';
import type { BackendSection, SectionReport } from './backend-section.ts';
import { runPlanned, type PlannedRollout } from './served.ts';

type ClassName = keyof typeof bindings;

/** The calls of one rollout come by an address of their own. */
const endedPath = '/ended';

const kinds: Record<
  ClassName,
  { readonly works: string; readonly cause: string; readonly end: Answer }
> = {
  ChatAgent: {
    works: 'BaseAgent of harbor, one process killed',
    cause: 'RUNNER_FAILED',
    end: async (response, call) => {
      // It says which process it is.
      const { user } = JSON.parse(call.body.toString()) as { readonly user: string };
      process.kill(Number(user), 'SIGKILL');
      await answerYes(response, call);
    },
  },
  InstalledAgent: {
    works: 'BaseInstalledAgent of harbor, one refused by its model',
    cause: 'AGENT_EXIT_NONZERO',
    end: (response) => void response.writeHead(429).end('{}'),
  },
};

async function runAgents(
  name: ClassName,
  { environment, count }: { readonly environment: string; readonly count: number },
): Promise<SectionReport> {
  const { cause, end } = kinds[name];
  const answer: Answer = (response, call) =>
    call.url.startsWith(endedPath) ? end(response, call) : answerYes(response, call);
  await using bench = await openHarborBench(name, answer, environment);
  const { server, upstream, request } = bench;
  await using controller = new RolloutController({ serverUrl: server.url });
  await controller.start();
  const planned = Array.from({ length: count }, (_, index): PlannedRollout => ({
    rollout_id: `agent-${index}`,
    promised: 1,
  }));
  const ended: PlannedRollout = {
    ...{ rollout_id: 'ended', promised: { cause } },
    chat_completions_url: `${upstream.url}${endedPath}/v1`,
  };
  const rollOut = (over: object) => controller.run({ ...request, ...over });
  return await runPlanned({ server, rollOut }, [ended, ...planned]);
}

export const agentSections: readonly BackendSection[] = realProviders().flatMap(({ kind, skip }) =>
  (['ChatAgent', 'InstalledAgent'] as const).map((name): BackendSection => ({
    ...{ backend: 'native', environment: kind },
    works: `${kinds[name].works} (${bindings[name]})`,
    run: (count) => {
      if (skip !== null) throw new Error(`cannot be shown here: ${skip}`);
      return runAgents(name, { environment: kind, count });
    },
  })),
);
