/**
 * Checks a file of samples from nothing but its lines: every call in a sample has the digest that the head says, over each id, log-probability and version on its
 * path; the digests make the chain; masks, weights and lengths are what the calls say, and no call is trained twice. One flipped id breaks it.
 */
import { createHash, type Hash } from 'node:crypto';
import type { z } from 'zod';
import { messageOf, RolloutError } from '../../core/errors.ts';
import {
  sampleLineSchema,
  samplesEndSchema,
  samplesHeadSchema,
  type SampleCall,
  type SampleLine,
  type SamplesHead,
  type SampleSpanLine,
} from '../../wire/samples/sample-lines.ts';
import { callDigest, nextLink } from '../node-digest.ts';

export interface AuditedSamples {
  readonly rolloutId: string | null;
  readonly calls: number;
  readonly callsWithoutIds: number;
  /** Calls whose digest was computed again: those that are in a sample. */
  readonly checkedCalls: number;
  readonly samples: number;
  readonly tokens: number;
  readonly trainedTokens: number;
  readonly link: string | null;
}

const weightTolerance = 1e-9;

/** Takes lines in order, each with its line break. SAMPLES_INVALID names the line and what is wrong. */
export class SamplesAudit {
  readonly #file: string;
  readonly #hash: Hash = createHash('sha256');
  readonly #checked = new Set<number>();
  readonly #trainedIn = new Map<number, number>();
  #line = 0;
  #head: SamplesHead | null = null;
  #calls = new Map<number, SampleCall>();
  #samples = 0;
  #tokens = 0;
  #trainedTokens = 0;
  #weights: { readonly weight: number; readonly trained: number }[] = [];
  #isOver = false;

  constructor(file: string) {
    this.#file = file;
  }

  line(bytes: Uint8Array): void {
    this.#line += 1;
    if (this.#isOver) throw this.#wrong('something stands behind the end');
    const document = this.#parsed(Buffer.from(bytes).toString('utf8'));
    if (this.#head === null) this.#begin(this.#valid(samplesHeadSchema, document));
    else if (isEnd(document)) this.#end(this.#valid(samplesEndSchema, document));
    else this.#sample(this.#valid(sampleLineSchema, document));
    this.#hash.update(bytes);
  }

  /** All lines were given. */
  end(): AuditedSamples {
    if (this.#head === null || !this.#isOver) throw this.#wrong('its end is missing');
    const { rollout_id: rolloutId, calls, calls_without_ids: callsWithoutIds, link } = this.#head;
    return {
      ...{ rolloutId, calls: calls.length, callsWithoutIds, checkedCalls: this.#checked.size },
      ...{ samples: this.#samples, tokens: this.#tokens, trainedTokens: this.#trainedTokens, link },
    };
  }

  #begin(head: SamplesHead): void {
    this.#head = head;
    let link: string | null = null;
    for (const call of head.calls) {
      if (this.#calls.has(call.call)) throw this.#wrong(`call ${call.call} stands twice`);
      if (call.parent !== null && !this.#calls.has(call.parent))
        throw this.#wrong(`call ${call.call} goes on from one that is not before it`);
      this.#calls.set(call.call, call);
      link = nextLink(link, call.digest);
    }
    if (link !== head.link) throw this.#wrong('the digests of the calls do not make the chain');
  }

  #sample(sample: SampleLine): void {
    const { tokens, prompt_length: promptLength, calls, loss_mask: mask, log_probs } = sample;
    if (sample.sample !== this.#samples) throw this.#wrong('samples are missing or not in order');
    this.#samples += 1;
    const length = tokens.length - promptLength;
    if (mask.length !== length || (log_probs !== null && log_probs.length !== length))
      throw this.#wrong('mask or log-probabilities are not as long as the response');
    const known = new Uint8Array(length);
    const isSampled = new Uint8Array(length);
    let parent: SampleSpanLine | null = null;
    for (const span of calls) {
      if (span.begin !== (parent?.end ?? 0) || span.output < span.begin || span.end < span.output)
        throw this.#wrong(`call ${span.call} does not begin where the one before it ends`);
      if ((parent === null && span.output !== promptLength) || span.end > tokens.length)
        throw this.#wrong(`call ${span.call} is not where the prompt or the response ends`);
      this.#call(sample, span, parent);
      isSampled.fill(1, span.output - promptLength, span.end - promptLength);
      if (span.trained) known.fill(1, span.output - promptLength, span.end - promptLength);
      parent = span;
    }
    if (parent?.end !== tokens.length) throw this.#wrong('tokens belong to no call');
    if (mask.some((value, at) => value !== known[at]))
      throw this.#wrong('the mask is not that of the trained calls');
    if (log_probs?.some((value, at) => isSampled[at] === 0 && !Object.is(value, 0)) === true)
      throw this.#wrong('a token that nobody sampled has a log-probability');
    const trained = mask.filter((value) => value === 1).length;
    this.#tokens += tokens.length;
    this.#trainedTokens += trained;
    this.#weights.push({ weight: sample.weight, trained });
  }

  #call(sample: SampleLine, span: SampleSpanLine, parent: SampleSpanLine | null): void {
    const call = this.#calls.get(span.call);
    if (call?.parent !== (parent?.call ?? null))
      throw this.#wrong(`call ${span.call} is not where the head has it`);
    if (span.trained) {
      const other = this.#trainedIn.get(span.call);
      if (other !== undefined)
        throw this.#wrong(`call ${span.call} is trained in sample ${other} already`);
      this.#trainedIn.set(span.call, sample.sample);
    }
    const digest = callDigest({
      parent: parent === null ? null : (this.#calls.get(parent.call)?.digest ?? null),
      kept: span.begin,
      promptIds: Int32Array.from(sample.tokens.slice(span.begin, span.output)),
      outputIds: Int32Array.from([
        ...sample.tokens.slice(span.output, span.end),
        ...(span.missing?.ids ?? []),
      ]),
      logprobs: this.#logprobs(sample, span),
      weightVersion: span.weight_version,
    });
    if (digest !== call.digest)
      throw this.#wrong(`call ${span.call} is not what the engine was given and sampled`);
    this.#checked.add(span.call);
  }

  #logprobs(sample: SampleLine, span: SampleSpanLine): Float64Array | null {
    if (!span.has_log_probs) return null;
    const from = sample.prompt_length;
    const own =
      sample.log_probs === null
        ? (span.log_probs ?? [])
        : sample.log_probs.slice(span.output - from, span.end - from);
    return Float64Array.from([...own, ...(span.missing?.log_probs ?? [])], Number);
  }

  #end(end: z.infer<typeof samplesEndSchema>): void {
    this.#isOver = true;
    if (end.samples !== this.#samples) throw this.#wrong('samples are missing');
    if (end.sha256 !== this.#hash.copy().digest('hex'))
      throw this.#wrong('the file is not as it was written');
    for (const { weight, trained } of this.#weights)
      if (Math.abs(weight - trained / this.#trainedTokens) > weightTolerance)
        throw this.#wrong('a weight is not the share of the trained tokens');
  }

  #parsed(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw this.#wrong(`it is not JSON: ${messageOf(error)}`);
    }
  }

  #valid<T>(schema: z.ZodType<T>, document: unknown): T {
    const { success, data, error } = schema.safeParse(document);
    if (success) return data;
    const [issue] = error.issues;
    throw this.#wrong(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'it is not valid'}`);
  }

  #wrong(message: string): RolloutError {
    return new RolloutError('SAMPLES_INVALID', `line ${this.#line}: ${message}`, {
      phase: 'config',
      field: this.#file,
      remedy: 'Do not train on this file; take it from the archive again.',
    });
  }
}

function isEnd(document: unknown): boolean {
  return typeof document === 'object' && document !== null && 'slipway_samples_end' in document;
}
