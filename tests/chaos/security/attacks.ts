/** What somebody with one key, or none, tries against the server. Every attack answers what went wrong; nothing = it held. */
import { connect } from 'node:net';
import path from 'node:path';
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { startSlipway } from '../../support/slipway-cli.ts';
import type { GuardedServer, HeldRollout } from './guarded-server.ts';
import { crossKeys, type CrossingReport } from './key-crossing.ts';
import { findBelow, findIn, findInProcesses, problemsOf, type Find } from './secret-search.ts';

/** `slipway serve` on an address that others reach, without a key. */
export async function tryToBind(stateDir: string, hosts: readonly string[]): Promise<string[]> {
  const problems = await Promise.all(
    hosts.map(async (host) => {
      const args = ['serve', '--json', '--backend', 'null', '--host', host, '--port', '0'];
      const { child, ended } = startSlipway(args, { stateDir });
      child.stdout?.once('data', () => child.kill());
      const { exitCode, stdout, stderr } = await ended;
      const isRefused =
        exitCode !== 0 && stderr.includes('LISTEN_REFUSED') && !stdout.includes('"url"');
      return isRefused ? [] : [`${host}: exit ${exitCode}\n${stdout}${stderr}`];
    }),
  );
  return problems.flat();
}

/** With the route key of one rollout toward the model of another, in all the ways that a request can name one. */
export async function crossRoutes(
  guarded: GuardedServer,
  held: readonly HeldRollout[],
  attempts: number,
): Promise<CrossingReport> {
  const { upstream, secrets, server } = guarded;
  return await crossKeys(
    held.map(({ id, index, model }) => ({ id, index, apiKey: model.apiKey })),
    {
      ...{ attempts, upstream, origin: new URL(server.dataUrl).origin },
      secretOf: ({ id }) => secrets.get(`the llm-key of "${id}"`) ?? missing(),
    },
  );
}

const chat = '/v1/chat/completions';
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** Route keys at the control server, the control key and tenants' keys at the gateway, a tenant at another's rollouts. */
export async function crossPlanes(
  guarded: GuardedServer,
  held: readonly HeldRollout[],
): Promise<string[]> {
  const problems: string[] = [];
  const expect = (what: string, status: number, wanted: readonly number[]): void => {
    if (!wanted.includes(status)) problems.push(`${what}: ${status}`);
  };
  const { origin } = new URL(guarded.server.dataUrl);
  const [first] = held;
  if (first === undefined) return ['nothing is held'];
  const { keys } = guarded;
  for (const url of [
    '/api/v1/rollouts',
    `/api/v1/rollouts/${first.id}`,
    '/metrics',
    '/api/v1/events',
  ])
    for (const key of [first.model.apiKey, null])
      expect(`GET ${url}`, (await guarded.ask(url, { key })).status, [401]);
  for (const url of ['/rollout/cancel', '/api/v1/rollouts/cancel'])
    expect(url, (await guarded.post(url, { all: true }, first.model.apiKey)).status, [401]);
  for (const key of Object.values(keys))
    expect(
      'a control key at the gateway',
      await rawPost(origin, chat, { headers: bearer(key), body: '{}' }),
      [401],
    );
  for (const target of ['/rollout', '/rollout/cancel', '/api/v1/rollouts/cancel'])
    expect(
      `${target} on the data server`,
      await rawPost(origin, target, { headers: bearer(keys.control), body: '{"all":true}' }),
      [404],
    );

  const green = await guarded.hold(9_000, { key: keys.green });
  for (const url of [
    `/api/v1/rollouts/${green.id}`,
    `/api/v1/rollouts/${green.id}/files`,
    `/api/v1/doctor/${green.id}`,
  ])
    expect(`blue GET ${url}`, (await guarded.ask(url, { key: keys.blue })).status, [404]);
  for (const selector of [{ ids: [green.id] }, { prefix: '' }, { all: true }]) {
    const answer = await guarded.post('/rollout/cancel', selector, keys.blue);
    if ((await answer.text()).includes('cancelled_'))
      problems.push('blue cancelled a rollout of green');
  }
  if ((await guarded.state(green.id)) !== 'running') problems.push(`${green.id} does not run`);
  green.release();
  await guarded.ended(green.id);
  return problems;
}

/** Keys of rollouts that ended, and of ones that were cancelled. */
export async function useDeadKeys(
  guarded: GuardedServer,
  held: readonly HeldRollout[],
): Promise<{
  readonly refusedAfterMs: readonly number[];
  /** Calls that were still let through after the end was told. */
  readonly through: number;
  readonly problems: string[];
}> {
  const problems: string[] = [];
  const refusedAfterMs: number[] = [];
  let through = 0;
  const { origin } = new URL(guarded.server.dataUrl);
  const call = async ({ model }: HeldRollout) =>
    await rawPost(origin, chat, { headers: bearer(model.apiKey), body: '{"messages":[]}' });
  for (const [index, rollout] of held.entries()) {
    if ((await call(rollout)) === 401) problems.push(`${rollout.id} is refused while it lives`);
    if (index % 2 === 0) await guarded.post('/rollout/cancel', { ids: [rollout.id] });
    else {
      rollout.release();
      await guarded.ended(rollout.id);
    }
    const endedAt = performance.now();
    let status = await call(rollout);
    while (status !== 401 && performance.now() < endedAt + 10_000) {
      through += 1;
      status = await call(rollout);
    }
    refusedAfterMs.push(performance.now() - endedAt);
    const before = guarded.upstream.received.length;
    for (let again = 0; again < 3; again += 1)
      if ((await call(rollout)) !== 401) problems.push(`the key of ${rollout.id} lives`);
    if (guarded.upstream.received.length > before) problems.push(`${rollout.id} reached its model`);
  }
  return { refusedAfterMs, through, problems };
}

/** Names that are none, and names that look as if they led elsewhere but are only names. */
export const refusedIds = [
  ...['', '.', '..', '/', '../x', 'a/b', 'a\\b', '/etc/passwd', '..\\x', 'a\0b', 'a\nb', 'a\rb'],
  ...['\u007f', 'x'.repeat(257), 'ü'.repeat(129), '\ud800', '..\u0000', 'a/', '/..', './x'],
];
export const oddIds = [
  ...['...', '.hidden', '..x', '~', '-rf', '--help', '%2e%2e', '%2e%2e%2fx', '..%2f', '%00', '*'],
  ...['a b', ' ', "'", '"', '$(id)', '`id`', '{{x}}', '<b>', '&', '?', '#', 'a::b', 'con', 'NUL'],
  ...[
    '__proto__',
    'constructor',
    'outcome.json',
    'ü',
    '日本語',
    '👩‍👩‍👧',
    'a\u0301',
    'é',
    '\u202e',
    'x'.repeat(256),
  ],
];

export async function tryIds(guarded: GuardedServer): Promise<string[]> {
  const problems: string[] = [];
  const chatUrl = `${guarded.upstream.url}/u/0`;
  const before = namesIn(guarded.root);
  for (const id of refusedIds) {
    const { status } = await guarded.post('/rollout', guarded.body(id, {}, chatUrl));
    if (status !== 422) problems.push(`${JSON.stringify(id)} was answered ${status}`);
  }
  for (const id of oddIds) {
    const { status } = await guarded.post('/rollout', guarded.body(id, {}, chatUrl));
    if (status !== 202) problems.push(`${JSON.stringify(id)} was answered ${status}`);
  }
  for (const id of oddIds) {
    await guarded.ended(id);
    const url = `/api/v1/rollouts/${encodeURIComponent(id)}`;
    const seen = (await (await guarded.ask(url)).json()) as { id?: string };
    if (seen.id !== id)
      problems.push(`${JSON.stringify(id)} is shown as ${JSON.stringify(seen.id)}`);
    await until(guarded, id, problems);
  }
  const after = namesIn(guarded.root);
  if (after.join() !== before.join()) problems.push(`beside the data folder: ${after.join(' ')}`);
  const folders = readdirSync(path.join(guarded.dataDir, 'archive'));
  for (const folder of folders)
    if (!lstatSync(path.join(guarded.dataDir, 'archive', folder)).isDirectory())
      problems.push(`the archive holds ${folder}`);
  return problems;
}

async function until(guarded: GuardedServer, id: string, problems: string[]): Promise<void> {
  const url = `/api/v1/rollouts/${encodeURIComponent(id)}/files/outcome.json`;
  for (const deadline = performance.now() + 30_000; performance.now() < deadline;)
    if ((await guarded.ask(url)).status === 200) return;
  problems.push(`${JSON.stringify(id)} has no outcome.json`);
}

const namesIn = (dir: string): string[] => readdirSync(dir).toSorted();

/** Bodies beyond the limits, announced and unannounced. */
export async function sendLargeBodies(guarded: GuardedServer): Promise<string[]> {
  const problems: string[] = [];
  const large = 'x'.repeat(200_000);
  const targets = [
    `/k/${guarded.keys.control}/rollout`,
    `/k/${guarded.keys.control}/rollout/cancel`,
  ];
  for (const target of targets)
    for (const isChunked of [false, true]) {
      const status = await rawPost(guarded.server.url, target, {
        headers: {},
        body: large,
        isChunked,
      });
      if (status !== 413) problems.push(`${target.split('/').at(-1)} (${isChunked}): ${status}`);
    }
  return problems;
}

/** Everything that the server shows, says and leaves. */
export async function searchEverything(guarded: GuardedServer): Promise<string[]> {
  const { secrets, dataDir } = guarded;
  const finds: Find[] = [...findInProcesses(secrets)];
  const list = (await (await guarded.ask('/api/v1/rollouts?limit=500')).json()) as {
    rollouts: { id: string }[];
  };
  const urls = [
    ...['/health', '/metrics', '/api/v1/rollouts?limit=500', '/api/v1/events?limit=1000'],
    ...['/api/v1/admission', '/api/v1/callbacks/dead', '/api/v1/doctor', '/api/v1/openapi.json'],
  ];
  for (const { id } of list.rollouts) {
    const url = `/api/v1/rollouts/${encodeURIComponent(id)}`;
    const files = (await (await guarded.ask(`${url}/files`)).json()) as {
      files: { path: string }[];
    };
    urls.push(
      url,
      `/rollout/${encodeURIComponent(id)}/status`,
      `/api/v1/doctor/${encodeURIComponent(id)}`,
    );
    for (const file of files.files)
      urls.push(`${url}/files/${file.path.split('/').map(encodeURIComponent).join('/')}`);
  }
  for (const url of urls) {
    const answer = await guarded.ask(url);
    finds.push(...findIn(await answer.text(), `GET ${url}`, secrets));
  }
  finds.push(...findIn(guarded.server.errors(), 'stderr', secrets));
  // The store must know the keys that it sends; its files are for the owner only.
  finds.push(...findBelow(dataDir, secrets, (name) => !name.startsWith('store.')));
  for (const { body } of guarded.callbacks) finds.push(...findIn(body, 'a callback', secrets));
  const problems = problemsOf(finds);
  if (existsSync(path.join(dataDir, 'store.sqlite')))
    for (const name of readdirSync(dataDir).filter((each) => each.startsWith('store.sqlite')))
      if ((lstatSync(path.join(dataDir, name)).mode & 0o077) !== 0)
        problems.push(`${name} can be read by others`);
  return problems;
}

/** Links and special files that workflows left do not bring anything in. */
export async function inspectArtifacts(guarded: GuardedServer, id: string): Promise<string[]> {
  const { files } = (await (await guarded.ask(`/api/v1/rollouts/${id}/files`)).json()) as {
    files: { path: string }[];
  };
  const names = files.map((file) => file.path);
  const problems = names
    .filter((name) => /link|way-out|passwd|pipe|\/up/.test(name))
    .map((name) => `${name} is kept`);
  if (!names.some((name) => name.endsWith('plain.txt')))
    problems.push(`no plain file: ${names.join()}`);
  const outside = readFileSync(path.join(guarded.root, 'outside.txt'), 'utf8');
  const copies = findBelow(guarded.dataDir, new Map([['outside.txt', outside]]), () => true);
  return [...problems, ...problemsOf(copies)];
}

/** A POST whose target and headers go out as they are; the status, or 0 when the connection ends without an answer. */
async function rawPost(
  origin: string,
  target: string,
  options: {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly isChunked?: boolean;
  },
): Promise<number> {
  const { host, hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  const { body, isChunked = false } = options;
  const length = Buffer.byteLength(body);
  const headers = Object.entries({
    ...{ host, connection: 'close', 'content-type': 'application/json' },
    ...(isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(length) }),
    ...options.headers,
  });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.on('error', () => undefined);
  socket.setTimeout(30_000, () => socket.destroy());
  socket.write(`POST ${target} HTTP/1.1\r\n${lines}\r\n`);
  socket.write(isChunked ? `${length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body);
  const answer = await text(socket).catch(() => '');
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);
}

function missing(): never {
  throw new Error('missing');
}
