/** Keys of rollouts against each other, over all dialects and places of keys, in one process. */
import { randomBytes } from 'node:crypto';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { crossKeys, type CrossingReport } from '../../chaos/security/key-crossing.ts';
import type { KeyedRollout } from '../../chaos/security/key-tricks.ts';
import { findIn, problemsOf } from '../../chaos/security/secret-search.ts';
import { startRelay } from '../relay-fixture.ts';

export interface CrossedKeys extends CrossingReport {
  /** With the keys of rollouts that had ended or got a newer one. */
  readonly dead: CrossingReport;
}

export async function crossAll({
  rollouts: count,
  attempts,
  swaps = false,
}: {
  readonly rollouts: number;
  readonly attempts: number;
  /** Keys are mixed up among rollouts, which has to be found. */
  readonly swaps?: boolean;
}): Promise<CrossedKeys> {
  const answer = JSON.stringify({
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    count: 3,
  });
  await using upstream = await ChatUpstream.start((response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(answer);
  });
  await using gateway = await startRelay();
  const secrets = new Map<string, string>();
  const registered = async (index: number): Promise<KeyedRollout> => {
    const id = `rollout-${index}`;
    const secret = secrets.get(id) ?? `upstream-${randomBytes(16).toString('hex')}`;
    secrets.set(id, secret);
    const { apiKey } = await gateway.route(id, `${upstream.url}/u/${index}`, secret);
    return { id, index, apiKey };
  };
  const places = Array.from({ length: count }, (_, index) => index);
  const live = await Promise.all(places.map(registered));
  const answers: string[] = [];
  const crossing = {
    ...{ origin: gateway.url, upstream, attempts },
    secretOf: ({ id }: KeyedRollout) => secrets.get(id) ?? '',
    onAnswer: (text: string) => void answers.push(text),
  };
  const mixed = live.map((each, at) => ({
    ...each,
    ...(swaps && { apiKey: live[(at + 1) % count]?.apiKey ?? '' }),
  }));
  const report = await crossKeys(mixed, crossing);
  // Half of them end, half get a newer key.
  await Promise.all(
    live.map(({ id, index }) => (index % 2 === 0 ? gateway.relay.revoke(id) : registered(index))),
  );
  const dead = await crossKeys(live, { ...crossing, attempts: Math.min(attempts, 200) });
  const finds = answers.flatMap((text) =>
    findIn(text, `an answer: ${text.slice(0, 200)}`, secrets),
  );
  return { ...report, problems: [...report.problems, ...problemsOf(finds)], dead };
}
