/** The calls of a rollout as its samples have them, and what is wrong with the file: what a trainer sees of what the engine was given and said. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { auditSamples } from '../../../src/app/audit-samples.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { assembleFile } from '../../../src/gateway/samples/assemble-file.ts';
import type { SampleLine, SampleSpanLine } from '../../../src/wire/samples/sample-lines.ts';

export interface CallInSamples {
  readonly prompt: readonly number[];
  readonly sampled: readonly number[];
  /** null = the engine said none. */
  readonly logprobs: readonly number[] | null;
}

export interface SamplesOfCalls {
  readonly calls: ReadonlyMap<number, CallInSamples>;
  readonly problems: readonly string[];
}

/** Of each call every sample that has it must say the same, and one of them trains it. */
export async function callsInSamples(
  captured: string,
  { rolloutId, flip }: { readonly rolloutId: string; readonly flip: number },
): Promise<SamplesOfCalls> {
  const problems: string[] = [];
  const { samples, file } = await assembleFile({
    ...{ rolloutId, captured, agentCalls: null, reward: 0.5 },
    rules: {
      ...{ trainsSummaries: false, picker: 'drop_retries', maxTokens: null },
      ...{ routedExperts: false, indexerTopk: false },
    },
  });
  if (file === null)
    return { calls: new Map(), problems: [samples.notTrainable?.message ?? 'no file'] };
  const audited = await auditSamples(file, never).catch((error: unknown) => String(error));
  if (typeof audited === 'string') problems.push(audited);
  else if (audited.samples !== samples.count || audited.trainedTokens !== samples.trainedTokens)
    problems.push('the counts are not those of the file');
  const lines = (await readFile(file, 'utf8')).split('\n').slice(1, -2);
  const calls = new Map<number, CallInSamples>();
  const owners = new Map<number, number>();
  for (const text of lines) {
    const line = JSON.parse(text) as SampleLine;
    for (const span of line.calls) {
      const call = callOf(line, span);
      const known = calls.get(span.call);
      if (known !== undefined && !isSame(known, call)) problems.push(`call ${span.call} differs`);
      calls.set(span.call, call);
      if (isTrained(line, span)) owners.set(span.call, (owners.get(span.call) ?? 0) + 1);
    }
  }
  for (const [call, { sampled }] of calls)
    if (sampled.length > 0 && owners.get(call) !== 1)
      problems.push(`call ${call} is trained in ${owners.get(call) ?? 0} samples`);
  if (!(await isFlipFound(file, flip))) problems.push('a flipped id passes the audit');
  return { calls, problems };
}

function callOf(line: SampleLine, span: SampleSpanLine): CallInSamples {
  const from = line.prompt_length;
  const own = line.log_probs?.slice(span.output - from, span.end - from) ?? span.log_probs ?? [];
  return {
    prompt: line.tokens.slice(0, span.output),
    sampled: [...line.tokens.slice(span.output, span.end), ...(span.missing?.ids ?? [])],
    logprobs: span.has_log_probs ? [...own, ...(span.missing?.log_probs ?? [])] : null,
  };
}

/** By the mask, not by what the span says of itself. */
function isTrained({ loss_mask: mask, prompt_length: from }: SampleLine, span: SampleSpanLine) {
  return span.end > span.output && mask.slice(span.output - from, span.end - from).every(Boolean);
}

function isSame(one: CallInSamples, other: CallInSamples): boolean {
  try {
    assert.deepStrictEqual(one, other);
    return true;
  } catch {
    return false;
  }
}

/** Changes one id of the tokens of a sample, as `flip` chooses, and nothing else. */
async function isFlipFound(file: string, flip: number): Promise<boolean> {
  const text = await readFile(file, 'utf8');
  const at = text.indexOf('"tokens":[', Math.floor(text.length * 0.5));
  const begin = (at === -1 ? text.indexOf('"tokens":[') : at) + '"tokens":['.length;
  const end = text.indexOf(']', begin);
  const ids = text.slice(begin, end).split(',');
  const place = flip % ids.length;
  ids[place] = String(Number(ids[place]) ^ 1);
  const flipped = `${file}.flipped`;
  await writeFile(flipped, text.slice(0, begin) + ids.join(',') + text.slice(end));
  return await auditSamples(flipped, never).then(
    () => false,
    // The digest of the whole file stands in its last line; what is found is found before.
    (error: unknown) => !String(error).includes('not as it was written'),
  );
}
