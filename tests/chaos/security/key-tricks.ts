/** What a request with the key of one rollout, or with none, tries in order to reach another's model: in every dialect, and in every place for a key. */
export interface KeyedRollout {
  readonly id: string;
  /** Its upstream's address has the path `/u/INDEX`. */
  readonly index: number;
  readonly apiKey: string;
}

export interface Trick {
  readonly name: string;
  /** `own`: nothing is wrong with the key, and the request goes where it belongs or nowhere. */
  readonly expects: 'refused' | 'own';
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

interface Ask {
  readonly path: string;
  readonly body: (mark: string) => object;
}

const said = (mark: string) => [{ role: 'user', content: mark }];
const asks: readonly Ask[] = [
  { path: '/v1/chat/completions', body: (mark) => ({ model: 'm', messages: said(mark) }) },
  { path: '/v1/responses', body: (mark) => ({ model: 'm', input: mark }) },
  { path: '/v1/messages', body: (mark) => ({ model: 'm', max_tokens: 9, messages: said(mark) }) },
  { path: '/v1/messages/count_tokens', body: (mark) => ({ model: 'm', messages: said(mark) }) },
  { path: '/chat/completions', body: (mark) => ({ model: 'm', messages: said(mark) }) },
];

/** Where a key may stand. */
type Place = (key: string, path: string) => Pick<Trick, 'target' | 'headers'>;
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const places: readonly Place[] = [
  (key, path) => ({ target: path, headers: bearer(key) }),
  (key, path) => ({ target: path, headers: { 'x-api-key': key } }),
  (key, path) => ({ target: `/k/${encodeURIComponent(key)}${path}`, headers: {} }),
];

const changed = (key: string): string => key.slice(0, -1) + (key.endsWith('A') ? 'B' : 'A');
const swappedCase = (key: string): string =>
  key === key.toUpperCase() ? key.toLowerCase() : key.toUpperCase();

/** Keys that are nobody's, made of those of two rollouts. */
const forgeries: readonly (readonly [
  string,
  (own: KeyedRollout, other: KeyedRollout) => string,
])[] = [
  [
    'half of each key',
    (own, other) =>
      own.apiKey.slice(0, own.apiKey.length >> 1) + other.apiKey.slice(other.apiKey.length >> 1),
  ],
  ['the id of the other', (_, other) => other.id],
  ['the key with another last letter', (_, other) => changed(other.apiKey)],
  ['the key without its last letter', (_, other) => other.apiKey.slice(0, -1)],
  ['the key and a letter', (_, other) => `${other.apiKey}x`],
  ['the key in capitals', (_, other) => swappedCase(other.apiKey)],
  ['the key without its beginning', (_, other) => other.apiKey.replace(/^sk-slipway-/, '')],
  ['both keys', (own, other) => `${own.apiKey},${other.apiKey}`],
  ['no key', () => ''],
  ['a very long key', (own) => own.apiKey.repeat(50)],
  ['a name that objects have', () => '__proto__'],
];

/** Requests with the key of its own that name another rollout wherever a server might look for one. */
const detours: readonly ((
  own: KeyedRollout,
  other: KeyedRollout,
  path: string,
) => Pick<Trick, 'target' | 'headers'>)[] = [
  (own, _, path) => ({ target: path, headers: bearer(own.apiKey) }),
  (own, other, path) => ({
    target: `${path}?rollout_id=${other.id}&key=x`,
    headers: { ...bearer(own.apiKey), 'x-rollout-id': other.id },
  }),
  (own, other, path) => ({ target: `/v1/../u/${other.index}${path}`, headers: bearer(own.apiKey) }),
  (own, other, path) => ({
    target: `/k/${own.apiKey}/v1/../../../u/${other.index}${path}`,
    headers: {},
  }),
  (own, other, path) => ({
    target: `/k/${own.apiKey}%2f..%2f${other.id}${path}`,
    headers: bearer(own.apiKey),
  }),
  (own, _, path) => ({
    target: `http://127.0.0.1:1${path}`,
    headers: { ...bearer(own.apiKey), host: '127.0.0.1:1' },
  }),
  (own, other, path) => ({
    target: path,
    headers: {
      ...bearer(own.apiKey),
      'x-forwarded-host': `u/${other.index}`,
      cookie: other.apiKey,
    },
  }),
];

export const trickCount = asks.length * (forgeries.length * places.length + detours.length + 1);

/** The numbers up to `trickCount` are all tricks once. `mark` stands in the words of the request. */
export function trickOf(
  number: number,
  {
    own,
    other,
    mark,
  }: { readonly own: KeyedRollout; readonly other: KeyedRollout; readonly mark: string },
): Trick {
  const ask = pick(asks, number);
  const body = ask.body(mark);
  const which = Math.floor(number / asks.length) % (trickCount / asks.length);
  if (which < detours.length)
    return {
      ...{ name: 'a detour', expects: 'own', body },
      ...pick(detours, which)(own, other, ask.path),
    };
  if (which === detours.length)
    return {
      ...{ name: 'two different keys', expects: 'refused', target: ask.path, body },
      headers: { ...bearer(own.apiKey), 'x-api-key': other.apiKey },
    };
  const forgery = which - detours.length - 1;
  const [name, forged] = pick(forgeries, forgery);
  const place = pick(places, Math.floor(forgery / forgeries.length));
  return { name, expects: 'refused', body, ...place(forged(own, other), ask.path) };
}

function pick<Value>(values: readonly Value[], number: number): Value {
  return values[number % values.length] as Value;
}
