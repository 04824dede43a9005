/** Rollouts' keys tried toward other rollouts' models, against a gateway whose upstreams keep what they got. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { trickOf, type KeyedRollout, type Trick } from './key-tricks.ts';

export interface CrossingReport {
  /** Without a word to any upstream. */
  readonly refused: number;
  /** The key was right, and its own upstream alone heard of it. */
  readonly ownRoute: number;
  readonly problems: string[];
}

export interface Crossing {
  readonly origin: string;
  readonly upstream: ChatUpstream;
  readonly attempts: number;
  /** The key of its upstream. */
  readonly secretOf: (rollout: KeyedRollout) => string;
  /** Everything that was answered. */
  readonly onAnswer?: (answer: string) => void;
}

const width = 16;

export async function crossKeys(
  rollouts: readonly KeyedRollout[],
  crossing: Crossing,
): Promise<CrossingReport> {
  const { origin, upstream, attempts, secretOf, onAnswer } = crossing;
  const problems: string[] = [];
  const counts = { refused: 0, ownRoute: 0 };
  const attack = async (number: number): Promise<void> => {
    const own = rollouts[number % rollouts.length];
    const step = 1 + (Math.floor(number / rollouts.length) % (rollouts.length - 1));
    const other = rollouts[(number + step) % rollouts.length];
    if (own === undefined || other === undefined) return;
    const mark = `attempt-${number}`;
    const trick = trickOf(number, { own, other, mark });
    const { status, answer } = await rawExchange(origin, trick);
    onAnswer?.(answer);
    const calls = upstream.received.filter(({ body }) => body.toString().includes(`"${mark}"`));
    const what = `${trick.name}: ${trick.target} with ${JSON.stringify(trick.headers)}`;
    const isOwn = calls.every(({ url }) => url.startsWith(`/u/${own.index}/`));
    if (calls.length === 0 && status >= 400) counts.refused += 1;
    else if (trick.expects === 'own' && isOwn) counts.ownRoute += 1;
    else problems.push(`${what}: ${calls[0]?.url ?? status}`);
    if (calls.some((call) => call.rawHeaders.join(' ').includes(secretOf(other))))
      problems.push(`${what}: the key of ${other.id} went out`);
  };
  for (let first = 0; first < attempts; first += width) {
    const numbers = Array.from(
      { length: Math.min(width, attempts - first) },
      (_, at) => first + at,
    );
    upstream.received.length = 0;
    await Promise.all(numbers.map(attack));
  }
  return { ...counts, problems };
}

/** Not through a client, which would tidy the target up. Answers what came, head and body. */
export async function rawExchange(
  origin: string,
  { target, headers, body }: Pick<Trick, 'target' | 'headers' | 'body'>,
): Promise<{ readonly status: number; readonly answer: string }> {
  const { host, hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  const given = JSON.stringify(body);
  const length = String(Buffer.byteLength(given));
  const fields = Object.entries({
    ...{ host, connection: 'close', 'content-type': 'application/json', 'content-length': length },
    ...headers,
  });
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.on('error', () => undefined);
  socket.setTimeout(30_000, () => socket.destroy());
  socket.write(`POST ${target} HTTP/1.1\r\n${lines}\r\n${given}`);
  const answer = await text(socket).catch(() => '');
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0), answer };
}
