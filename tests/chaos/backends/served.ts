/** Rollouts that a controller asks a server for, each with what is promised of it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import {
  RolloutController,
  type ControllerRequest,
  type ControllerResult,
} from '../../../src/callbacks/rollout-controller.ts';
import type { RolloutDetailDocument } from '../../../src/wire/api/rollout.ts';
import { startServeProcess, type ServeProcess } from '../../support/serve-process.ts';
import { until } from '../../support/until.ts';
import type { SectionReport } from './backend-section.ts';

export interface PlannedRollout extends Partial<ControllerRequest> {
  readonly rollout_id: string;
  /** The reward, or how it has to fail. */
  readonly promised: number | { readonly cause: string };
  /** What else is wrong with it; a failing one is not asked. */
  readonly judge?: (result: ControllerResult) => readonly string[] | Promise<readonly string[]>;
}

export interface Served extends AsyncDisposable {
  readonly server: ServeProcess;
  /** Folder of the test; its `data` is the server's. */
  readonly root: string;
  rollOut(request: Partial<ControllerRequest>): Promise<ControllerResult>;
}

export async function serve(options: {
  /** Of `slipway.toml`. */
  readonly config: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Of every rollout, where it says nothing else. */
  readonly request: Partial<ControllerRequest>;
}): Promise<Served> {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-served-'));
  stack.defer(() => rm(root, { recursive: true, force: true }));
  await mkdir(path.join(root, 'state'));
  const config = path.join(root, 'slipway.toml');
  await writeFile(config, options.config);
  const flags = ['--config', config, '--data-dir', path.join(root, 'data')];
  const server = stack.use(
    await startServeProcess([...flags, '--max-concurrent', '4', '--max-queue-depth', '1000'], {
      stateDir: path.join(root, 'state'),
      variables: { PYTHONDONTWRITEBYTECODE: '1', ...options.variables },
    }),
  );
  const controller = stack.use(new RolloutController({ serverUrl: server.url }));
  await controller.start();
  const kept = stack.move();
  return {
    ...{ server, root },
    rollOut: (request) =>
      controller.run({ initial_messages: [], metadata: {}, ...options.request, ...request }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** All of them at once; those that have to fail run beside the others. */
export async function runPlanned(
  { server, rollOut }: Pick<Served, 'server' | 'rollOut'>,
  planned: readonly PlannedRollout[],
): Promise<SectionReport> {
  const judged = await Promise.all(
    planned.map(async ({ promised, judge, ...request }) => {
      const result = await rollOut(request);
      if (typeof promised !== 'number')
        return {
          isFailing: true,
          problems: await judgeFailure(server.url, result, promised.cause),
        };
      const { status, reward } = result;
      const isPromised = status === 'success' && reward === promised;
      const told = JSON.stringify(result.completion?.['err_message'] ?? result.grader);
      const problems = isPromised
        ? []
        : [`ended as ${status}, reward ${reward} and not ${promised}: ${told.slice(0, 400)}`];
      return { isFailing: false, problems: [...problems, ...((await judge?.(result)) ?? [])] };
    }),
  );
  const [failing, others] = [true, false].map((is) => judged.filter((one) => one.isFailing === is));
  const good = (all: typeof judged): number =>
    all.filter(({ problems }) => problems.length === 0).length;
  return {
    ...{ rollouts: others!.length, right: good(others!) },
    ...{ failing: failing!.length, typed: good(failing!) },
    problems: judged.flatMap(({ problems }, index) =>
      problems.map((problem) => `${planned[index]!.rollout_id}: ${problem}`),
    ),
  };
}

async function judgeFailure(
  url: string,
  { id, status, reward, completion, grader }: ControllerResult,
  cause: string,
): Promise<readonly string[]> {
  const answer = await fetch(`${url}/api/v1/rollouts/${id}`);
  const { outcome } = (await answer.json()) as RolloutDetailDocument;
  const category = completion?.['err_category'] ?? grader?.['err_category'] ?? null;
  const found = { status, reward, cause: outcome?.cause ?? null };
  const isTyped = status === 'failure' && reward === null && found.cause === cause;
  return isTyped && category !== null
    ? []
    : [`${JSON.stringify({ ...found, category })}, and not a failure by ${cause}`];
}

/** A file that the archive keeps of a rollout. It is written beside the callbacks. */
export async function keptFile({ url }: ServeProcess, id: string, name: string): Promise<string> {
  let found = '';
  await until(`${name} of ${id}`, async () => {
    const response = await fetch(`${url}/api/v1/rollouts/${id}/files/${name}`);
    found = await response.text();
    return response.status === 200;
  });
  return found;
}
