/** Valid trajectories as agents could write them, with every optional part of the format; the same seed gives the same document. */
import { seededRandom } from '../../support/random.ts';

export type Json = Readonly<Record<string, unknown>>;

export class AtifMaker {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }

  document(depth = 0): Json {
    const count = 1 + this.below(5);
    return {
      ...(this.chance(0.7) && { schema_version: `ATIF-v1.${this.below(8)}` }),
      ...this.#maybe('session_id', () => this.#text()),
      ...(depth > 0
        ? { trajectory_id: `sub-${depth}-${this.below(1e9)}` }
        : this.#maybe('trajectory_id', () => this.#text())),
      agent: this.#agent(),
      steps: Array.from({ length: count }, (_, index) => this.#step(index + 1)),
      ...this.#maybe('notes', () => this.#text()),
      ...this.#maybe('final_metrics', () => this.#totals()),
      ...this.#maybe('continued_trajectory_ref', () => 'trajectory.cont-1.json'),
      ...this.#maybe('extra', () => ({
        ...this.#extra(),
        ...(this.chance(0.3) && { osmosis: { before: this.#text(), reward: 'mine' } }),
      })),
      ...(depth < 2 &&
        this.#maybe('subagent_trajectories', () =>
          Array.from({ length: this.below(3) }, () => this.document(depth + 1)),
        )),
    };
  }

  /** What a controller could report of that many calls. */
  report(calls: number): Json {
    return {
      ...this.#maybe('model_name', () => 'reported/model'),
      samples: {
        any: {
          llm_call_metrics: Array.from({ length: calls }, () => ({
            ...this.#maybe('prompt_tokens', () => this.below(1e6)),
            ...this.#maybe('completion_tokens', () => this.below(1e6)),
            ...this.#maybe('cached_tokens', () => this.below(1e6)),
            ...this.#maybe('cost_usd', () => this.#random()),
            ...this.#maybe('prompt_token_ids', () => this.#ids()),
            ...this.#maybe('completion_token_ids', () => this.#ids()),
            ...this.#maybe('logprobs', () => this.#ids().map((id) => -1 / (id + 2))),
            ...this.#maybe('model_name', () => this.#text()),
            ...this.#maybe('extra', () => ({ reported: this.#text() })),
          })),
          ...this.#maybe('final_metrics', () => this.#totals()),
        },
      },
    };
  }

  #agent(): Json {
    return {
      name: 'an-agent',
      version: '1.0',
      ...this.#maybe('model_name', () => this.#text()),
      ...this.#maybe('tool_definitions', () => [
        { type: 'function', function: { name: 'f', parameters: { nothing: null, deep: [{}] } } },
      ]),
      ...this.#maybe('extra', () => ({
        ...this.#extra(),
        [this.pick(['api_key', 'My-Api-Key', 'x_TOKEN', 'password'])]: this.#value(),
        max_tokens: 5,
      })),
    };
  }

  #step(id: number): Json {
    const source = this.pick(['system', 'user', 'agent']);
    const calls = source === 'agent' ? this.below(3) : 0;
    const callIds = Array.from({ length: calls }, (_, index) => `call-${id}-${index}`);
    const isAgent = source === 'agent';
    const isSilent = isAgent && this.chance(0.1);
    return {
      step_id: id,
      ...this.#maybe('timestamp', () => '2026-01-02T03:04:05.678Z'),
      source,
      message: this.#content(),
      ...(isAgent && {
        ...this.#maybe('model_name', () => this.#text()),
        ...this.#maybe('reasoning_effort', () => this.pick<unknown>(['high', 0.5])),
        ...(!isSilent && this.#maybe('reasoning_content', () => this.#text())),
        ...(calls > 0 && { tool_calls: callIds.map((callId) => this.#call(callId)) }),
        ...(!isSilent && this.#maybe('metrics', () => this.#metrics())),
      }),
      ...this.#maybe('observation', () => ({
        results: Array.from({ length: this.below(3) }, () => this.#result(callIds)),
      })),
      ...this.#maybe('is_copied_context', () => this.chance(0.5)),
      ...(isAgent && { llm_call_count: isSilent ? 0 : this.pick<unknown>([1, 2, null]) }),
      ...this.#maybe('extra', () => this.#extra()),
    };
  }

  #call(id: string): Json {
    return {
      tool_call_id: id,
      function_name: this.#text(),
      arguments: this.#extra(),
      ...this.#maybe('extra', () => this.#extra()),
    };
  }

  #result(callIds: readonly string[]): Json {
    return {
      ...(callIds.length > 0 && this.#maybe('source_call_id', () => callIds[0])),
      ...this.#maybe('content', () => this.#content()),
      ...this.#maybe('subagent_trajectory_ref', () => [
        this.pick<Json>([
          { trajectory_id: 'one', session_id: 's' },
          { trajectory_path: 'sub.json', extra: this.#extra() },
        ]),
      ]),
      ...this.#maybe('extra', () => this.#extra()),
    };
  }

  #content(): unknown {
    if (this.chance(0.7)) return this.#text();
    const image = { media_type: 'image/png', path: 'images/one.png' };
    return [
      { type: 'text', text: this.#text() },
      { type: 'image', source: image },
    ];
  }

  #metrics(): Json {
    return {
      ...this.#maybe('prompt_tokens', () => this.below(1e6)),
      ...this.#maybe('completion_tokens', () => this.below(1e6)),
      ...this.#maybe('cached_tokens', () => this.below(1e6)),
      ...this.#maybe('cost_usd', () => this.#random()),
      ...this.#maybe('prompt_token_ids', () => this.#ids()),
      ...this.#maybe('completion_token_ids', () => this.#ids()),
      ...this.#maybe('logprobs', () => this.#ids().map((id) => -1 / (id + 1))),
      ...this.#maybe('extra', () => this.#extra()),
    };
  }

  #totals(): Json {
    return {
      ...this.#maybe('total_prompt_tokens', () => this.below(1e9)),
      ...this.#maybe('total_completion_tokens', () => this.below(1e9)),
      ...this.#maybe('total_cached_tokens', () => this.below(1e9)),
      ...this.#maybe('total_cost_usd', () => this.#random()),
      ...this.#maybe('total_steps', () => this.below(9)),
      ...this.#maybe('extra', () => this.#extra()),
    };
  }

  /** There, absent, or null, which says the same. */
  #maybe(key: string, value: () => unknown): Json {
    if (this.chance(0.5)) return {};
    return { [key]: this.chance(0.1) ? null : value() };
  }

  #ids(): readonly number[] {
    return Array.from({ length: this.below(6) }, () => this.below(150_000));
  }

  #extra(): Json {
    return { [this.#text()]: this.#value(), nothing: null, list: [1, null, { a: this.#value() }] };
  }

  #value(): unknown {
    return this.pick<unknown>([null, true, 0, -1.5, 1e21, '', this.#text(), [], {}]);
  }

  #text(): string {
    return this.pick(['plain', 'zwei Zeilen\nund "mehr"', '日本語 👩‍🔬', '\u0000\u2028\\', ' ', '']);
  }
}
