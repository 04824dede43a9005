/** A server of its own for hangs, and how long each takes to be named: by the API, and by `slipway doctor`. */
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { DiagnosisDocument } from '../../src/wire/api/diagnosis.ts';
import { isHang, type HangKind } from '../../src/wire/rollout/diagnosis.ts';
import { startServeProcess, type ServeProcess } from '../support/serve-process.ts';
import { startSlipway } from '../support/slipway-cli.ts';

export interface InjectedHang {
  readonly kind: HangKind;
  /** null = it is the server that is asked about. */
  readonly id: string | null;
  readonly owner: string;
  /** Since when it hangs, in milliseconds of the epoch; null = not yet. Asked of what hangs, not of the server. */
  readonly begunAt: () => Promise<number | null> | number | null;
}

export interface NamedHang {
  readonly kind: HangKind;
  /** From its beginning until the API named it; null = it never did. */
  readonly namedMs: number | null;
  readonly finding: DiagnosisDocument | null;
  readonly problems: readonly string[];
}

const longestMs = 120_000;

export class HangBench implements AsyncDisposable {
  readonly #server: ServeProcess;
  readonly #stateDir: string;

  private constructor(server: ServeProcess, stateDir: string) {
    this.#server = server;
    this.#stateDir = stateDir;
  }

  static async open(
    flags: readonly string[],
    options: { readonly stateDir: string; readonly variables?: Readonly<Record<string, string>> },
  ): Promise<HangBench> {
    const given = [...flags, '--shutdown-drain-sec', '0'];
    return new HangBench(await startServeProcess(given, options), options.stateDir);
  }

  /** Again while the server asks for patience. */
  async submit(id: string, body: Readonly<Record<string, unknown>>): Promise<void> {
    const request = {
      rollout_id: id,
      initial_messages: [],
      chat_completions_url: '',
      completion_callback_url: 'http://127.0.0.1:9/nobody',
      ...body,
    };
    const giveUpAt = Date.now() + longestMs;
    for (;;) {
      const answer = await fetch(`${this.#server.url}/rollout`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(request),
      });
      const text = await answer.text();
      if (answer.status === 202) return;
      if (answer.status !== 429 || Date.now() > giveUpAt)
        throw new Error(`${id} was answered ${answer.status} ${text}`);
      await delay(200);
    }
  }

  async status(id: string): Promise<string> {
    const answer = await fetch(`${this.#server.url}/rollout/${id}/status`);
    return ((await answer.json()) as { readonly status: string }).status;
  }

  /** All findings, or those about one rollout. */
  async findings(id: string | null): Promise<readonly DiagnosisDocument[]> {
    const part = id === null ? '' : `/${id}`;
    const answer = await fetch(`${this.#server.url}/api/v1/doctor${part}`);
    if (!answer.ok) return [];
    return ((await answer.json()) as { readonly findings: DiagnosisDocument[] }).findings;
  }

  /** Waits for the hang, then for its name; what it is called meanwhile must not be another hang. */
  async name(hang: InjectedHang): Promise<NamedHang> {
    const { kind, id, owner } = hang;
    const giveUpAt = Date.now() + longestMs;
    let begunAt: number | null = null;
    let found: readonly DiagnosisDocument[] = [];
    let wrong: string | null = null;
    while (Date.now() < giveUpAt) {
      begunAt ??= await hang.begunAt();
      found = await this.findings(id);
      const namedAt = Date.now();
      const finding = found.find((one) => one.kind === kind && one.rollout_id === id);
      if (finding !== undefined && begunAt !== null) {
        const faults = faultsOf(finding, owner);
        const problems = [...faults, ...(wrong === null ? [] : [wrong])];
        return { kind, namedMs: namedAt - begunAt, finding, problems };
      }
      const other = found.find((one) => isHang(one.kind) && one.rollout_id === id);
      if (id !== null && begunAt !== null && other !== undefined)
        wrong ??= `${kind} is called ${other.kind}: ${other.evidence.join('; ')}`;
      await delay(100);
    }
    const what = begunAt === null ? 'never began' : `is not named: ${JSON.stringify(found)}`;
    const problems = [`${kind} ${what}`, ...(wrong === null ? [] : [wrong])];
    return { kind, namedMs: null, finding: null, problems };
  }

  /** What is wrong with the answer of `slipway doctor`. */
  async program({ kind, id, owner }: InjectedHang): Promise<readonly string[]> {
    const args = ['doctor', ...(id === null ? [] : [id]), '--json', '--url', this.#server.url];
    const run = startSlipway(args, { stateDir: this.#stateDir });
    const { exitCode, stdout, stderr } = await run.ended;
    if (exitCode !== 0) return [`slipway doctor: exit ${String(exitCode)} ${stderr}`];
    const { findings } = JSON.parse(stdout) as { readonly findings: readonly DiagnosisDocument[] };
    const finding = findings.find((one) => one.kind === kind && one.rollout_id === id);
    return finding === undefined
      ? [`slipway doctor does not name ${kind}: ${stdout}`]
      : faultsOf(finding, owner);
  }

  /** Cancels what is live, ends the server, and answers what it said on its way. */
  async [Symbol.asyncDispose](): Promise<void> {
    await fetch(`${this.#server.url}/rollout/cancel`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"all":true}',
    }).catch(() => undefined);
    await this.#server.stop();
  }
}

/** When the first process with these words on its command line was started; null = there is none. */
export async function startOfProcessWith(words: string): Promise<number | null> {
  const uptimeMs = Number((await readFile('/proc/uptime', 'utf8')).split(' ')[0]) * 1000;
  const bootedAt = Date.now() - uptimeMs;
  const starts: number[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (!line.includes(words)) continue;
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
    if (Number.isFinite(ticks)) starts.push(bootedAt + ticks * 10);
  }
  return starts.length === 0 ? null : Math.min(...starts);
}

function faultsOf(
  { kind, owner, waiting_on: wait, since, evidence, remedy }: DiagnosisDocument,
  wanted: string,
): readonly string[] {
  return [
    ...(owner === wanted ? [] : [`${kind} is said to be up to ${String(owner)}, not ${wanted}`]),
    ...(wait === null || wait === '' ? [`${kind} is said to wait for nothing`] : []),
    ...(since === null ? [`${kind} is said to have no beginning`] : []),
    ...(evidence.length === 0 ? [`${kind} comes without evidence`] : []),
    ...(remedy === null ? [`${kind} comes without a remedy`] : []),
  ];
}
