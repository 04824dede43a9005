/** A process with an agent for every rollout that it is told of: one stream after the other, until the rollout is ended. */
import { createHistogram } from 'node:perf_hooks';
import { request, type ClientRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import type { AgentsReport, RouteLine, ToAgents } from './agents.ts';

/** A stream that was cut there ends here a moment later. */
const onTheWayMs = 3_000;
const body = JSON.stringify({
  ...{ model: 'null', stream: true },
  messages: [{ role: 'user', content: 'go on' }],
});

class Agent {
  readonly route: RouteLine;
  isEnding = false;
  #call: ClientRequest | null = null;

  constructor(route: RouteLine) {
    this.route = route;
    this.#begin();
  }

  get isOpen(): boolean {
    return this.#call !== null;
  }

  #begin(): void {
    const { baseUrl, apiKey } = this.route;
    counts.streams += 1;
    const call = request(`${baseUrl}/chat/completions`, {
      ...{ method: 'POST', agent: false },
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    });
    this.#call = call;
    call.on('error', (error) => this.#over(error.message));
    call.on('response', (answer) => {
      let hasEnded = false;
      if (answer.statusCode !== 200) {
        void text(answer).then(
          (said) => this.#over(`status ${answer.statusCode}: ${said}`),
          (error: unknown) => this.#over(`status ${answer.statusCode}: ${String(error)}`),
        );
        return;
      }
      answer.on('data', (piece: Buffer) => {
        hasEnded = piece.includes('[DONE]');
        note(piece);
      });
      answer.on('error', (error) => this.#over(error.message));
      answer.on('end', () => this.#over(hasEnded ? null : 'it ended before its end'));
    });
    call.end(body);
  }

  /** `problem` null = the stream came to its end. */
  #over(problem: string | null): void {
    if (this.#call === null) return;
    this.#call = null;
    if (problem !== null && !this.isEnding) errors.push(`${this.route.rolloutId}: ${problem}`);
    if (problem === null && !this.isEnding) this.#begin();
    else agents.delete(this.route.rolloutId);
  }
}

const agents = new Map<string, Agent>();
/** A rollout may be ended before its route is told. */
const ending = new Set<string>();
const counts = { streams: 0, events: 0 };
const errors: string[] = [];
const outlived: string[] = [];
const delays = createHistogram();

function note(piece: Buffer): void {
  const found = / (\d+) "/.exec(piece.toString('latin1'))?.[1];
  if (found === undefined) return;
  counts.events += 1;
  const delay = process.hrtime.bigint() - BigInt(found);
  delays.record(delay > 0n ? delay : 1n);
}

process.on('message', (message: ToAgents) => {
  if (message.kind === 'begin') {
    const { route } = message;
    if (!ending.has(route.rolloutId)) agents.set(route.rolloutId, new Agent(route));
  } else if (message.kind === 'report') {
    const report: AgentsReport = {
      ...{ ...counts, errors, outlived },
      open: [...agents.values()].filter(({ isOpen }) => isOpen).length,
      delayMs: { p50: delays.percentile(50) / 1e6, p99: delays.percentile(99) / 1e6 },
    };
    process.send?.(report);
  } else {
    const { rolloutId } = message;
    ending.add(rolloutId);
    const agent = agents.get(rolloutId);
    if (agent === undefined) return;
    if (message.kind === 'ending') agent.isEnding = true;
    else
      setTimeout(() => {
        if (agents.get(rolloutId)?.isOpen === true) outlived.push(rolloutId);
      }, onTheWayMs);
  }
});
process.on('disconnect', () => process.exit());
