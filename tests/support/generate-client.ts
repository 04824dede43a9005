/** SGLang's `/generate` as tests of log-probabilities use it. */
import assert from 'node:assert/strict';

interface NativeAnswer {
  readonly meta_info: {
    readonly input_token_logprobs?: readonly Triple[];
    readonly output_token_logprobs?: readonly Triple[];
    readonly output_top_logprobs?: readonly (readonly Triple[])[];
  };
}
/** Log-probability, id, text. */
type Triple = readonly [number | null, number, string | null];

export class GenerateClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** Log-probabilities of `ids` from `from` on, each given all ids before it; nothing is sampled. */
  async score(ids: readonly number[], from: number): Promise<number[]> {
    const { meta_info: info } = (await this.post('/generate', {
      input_ids: ids,
      sampling_params: { max_new_tokens: 0 },
      return_logprob: true,
      logprob_start_len: from - 1,
    })) as NativeAnswer;
    // The first entry has nothing before it.
    const scored = (info.input_token_logprobs ?? []).slice(1);
    assert.deepEqual(
      scored.map(([, id]) => id),
      ids.slice(from),
    );
    return scored.map(([logprob]) => logprob ?? Number.NaN);
  }

  /** Log-probabilities of every id that may follow. */
  async distribution(ids: readonly number[], vocabularySize: number): Promise<Map<number, number>> {
    const { meta_info: info } = (await this.post('/generate', {
      input_ids: ids,
      sampling_params: { max_new_tokens: 1, temperature: 0 },
      return_logprob: true,
      top_logprobs_num: vocabularySize,
    })) as NativeAnswer;
    const [top = []] = info.output_top_logprobs ?? [];
    return new Map(top.map(([logprob, id]) => [id, logprob ?? Number.NaN]));
  }

  async post(route: string, body: unknown): Promise<unknown> {
    const response = await fetch(`${this.#url}${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  }
}
