/** What agents on several hosts wrote down about their work, and what must be true of it, whoever died meanwhile. */

/** A line of an agent. */
export interface WorkSight {
  /** Of the rollout. */
  readonly key: string;
  readonly tenant: string;
  readonly host: string;
  readonly pid: number;
  readonly what: 'begin' | 'beat' | 'end';
  /** Milliseconds of the machine's clock, which all hosts of a test share. */
  readonly at: number;
}

export interface FleetCaps {
  readonly global: number;
  readonly perHost: number;
  /** Places of a tenant at most, where a tenant has such a limit. */
  readonly tenants: Readonly<Record<string, number>>;
}

export interface FleetJudgement {
  /** One line for everything that is wrong. */
  readonly problems: readonly string[];
  readonly begun: number;
  /** Most at one time: of all, of one host, of each tenant. */
  readonly mostGlobal: number;
  readonly mostOnHost: number;
  readonly mostOfTenant: Readonly<Record<string, number>>;
}

/** Whole lines only: the last one of a killed process may be cut. */
export function readSights(text: string): readonly WorkSight[] {
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as WorkSight);
}

export function judgeFleet(sights: readonly WorkSight[], caps: FleetCaps): FleetJudgement {
  const spans = spansOf(sights);
  const byKey = grouped(spans, ({ key }) => key);
  const doubles = [...byKey]
    .filter(([, begins]) => begins.length > 1)
    .map(
      ([key, begins]) => `${key}: begun ${begins.length} times (${begins.map(place).join(', ')})`,
    );
  const mostGlobal = mostAtOnce(spans);
  const hosts = [...grouped(spans, ({ host }) => host)].map(
    ([host, own]) => [host, mostAtOnce(own)] as const,
  );
  const tenants = Object.fromEntries(
    [...grouped(spans, ({ tenant }) => tenant)].map(([tenant, own]) => [tenant, mostAtOnce(own)]),
  );
  const over = (who: string, most: number, cap: number): readonly string[] =>
    most > cap ? [`${who}: ${most} at once, allowed ${cap}`] : [];
  return {
    problems: [
      ...doubles,
      ...over('all hosts', mostGlobal, caps.global),
      ...hosts.flatMap(([host, most]) => over(host, most, caps.perHost)),
      ...Object.entries(caps.tenants).flatMap(([tenant, cap]) =>
        over(`tenant ${tenant}`, tenants[tenant] ?? 0, cap),
      ),
    ],
    begun: byKey.size,
    ...{ mostGlobal, mostOnHost: Math.max(0, ...hosts.map(([, most]) => most)) },
    mostOfTenant: tenants,
  };
}

/** What was still seen later than this, by key. */
export function seenAfter(sights: readonly WorkSight[], at: number): readonly string[] {
  return [...new Set(sights.filter((sight) => sight.at > at).map(({ key }) => key))];
}

/** Of the begins in a time, those of one tenant. */
export function shareOfBegins(
  sights: readonly WorkSight[],
  tenant: string,
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const begins = sights.filter(({ what, at }) => what === 'begin' && at >= from && at <= to);
  return begins.filter((sight) => sight.tenant === tenant).length / begins.length;
}

/** One begin, until the last that was seen of it: shorter than its life rather than longer, so that no overlap is made up. */
interface Span {
  readonly key: string;
  readonly tenant: string;
  readonly host: string;
  readonly pid: number;
  readonly from: number;
  to: number;
}

function spansOf(sights: readonly WorkSight[]): readonly Span[] {
  const spans: Span[] = [];
  const open = new Map<string, Span>();
  for (const { key, tenant, host, pid, what, at } of sights) {
    const place = `${key} ${host} ${pid}`;
    const last = open.get(place);
    if (what === 'begin') {
      const span = { key, tenant, host, pid, from: at, to: at };
      spans.push(span);
      open.set(place, span);
    } else if (last !== undefined) last.to = Math.max(last.to, at);
  }
  return spans;
}

function mostAtOnce(spans: readonly Span[]): number {
  const changes = spans
    .flatMap(({ from, to }) => [
      { at: from, by: 1 },
      { at: to, by: -1 },
    ])
    .sort((a, b) => a.at - b.at || a.by - b.by);
  let [now, most] = [0, 0];
  for (const { by } of changes) most = Math.max(most, (now += by));
  return most;
}

function grouped(
  spans: readonly Span[],
  nameOf: (span: Span) => string,
): ReadonlyMap<string, readonly Span[]> {
  return Map.groupBy(spans, nameOf);
}

function place({ host, pid }: Span): string {
  return `${host}/${pid}`;
}
