/**
 * Takes secrets out of a trajectory that is already a file, whoever wrote it. Replacing bytes would not do: a secret is spelled in another way inside
 * a JSON string, one of digits also looks like a token id, and ids go on encoding what the text no longer says. Parts that hold no secret stay as
 * they are, byte for byte, and a document without any is not written.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { atifText } from '../wire/atif/atif-text.ts';
import type { AtifAgent, AtifStep } from '../wire/atif/atif.ts';
import { parsePart, readParts, type DocumentPart } from './document-parts.ts';
import { TrajectoryRedactor } from './redact.ts';
import { spillLines } from './spill.ts';

const headBytes = 4096;

/** Whether a file is a trajectory: by the version that it names near its beginning. Links are not followed. */
export async function isTrajectoryFile(file: string): Promise<boolean> {
  if (!file.endsWith('.json')) return false;
  await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(headBytes), 0, headBytes, 0);
  return /^\s*\{[^]*"ATIF-v\d/.test(buffer.toString('latin1', 0, bytesRead));
}

/** TRAJECTORY_INVALID when it is no JSON object after all; the file is then as it was. */
export async function redactTrajectory(file: string, secrets: readonly string[]): Promise<void> {
  await using source = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  const document = { file, source };
  const { isChanged, isTold } = await lookThrough(document, secrets);
  if (!isChanged) return;
  const redactor = new TrajectoryRedactor(secrets, { keepsNulls: true, isTold });
  await replace(document, documentTexts(cleanedParts(document, redactor)));
}

/**
 * The same for the spilled steps that a failed run left; a line that is not JSON has the bytes of each spelling replaced. TRAJECTORY_INVALID for a
 * line that is too long.
 */
export async function redactSpill(file: string, secrets: readonly string[]): Promise<void> {
  await using source = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  const document = { file, source };
  let isChanged = false;
  for await (const line of cleanedLines(document, secrets)) isChanged ||= line.isChanged;
  if (!isChanged) return;
  const texts = async function* (): AsyncGenerator<string | Buffer> {
    for await (const { text } of cleanedLines(document, secrets)) yield text;
  };
  await replace(document, texts());
}

async function* cleanedLines(
  { file, source }: OpenDocument,
  secrets: readonly string[],
): AsyncGenerator<{ readonly text: string | Buffer; readonly isChanged: boolean }> {
  const redactor = new TrajectoryRedactor(secrets, { keepsNulls: true });
  for await (const bytes of spillLines(file, source)) {
    const line = bytes.toString('utf8');
    const text = cleanedLine(redactor, line);
    yield text === line ? { text: bytes, isChanged: false } : { text, isChanged: true };
  }
}

function cleanedLine(redactor: TrajectoryRedactor, line: string): string {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return redactor.text(line);
  }
  const isStep = isObject(value) && !('slipway_spill' in value);
  const cleaned = isStep ? cleanedValue(redactor, null, value) : redactor.clean(value);
  if (isDeepStrictEqual(cleaned, value)) return line;
  return atifText(cleaned, null, 'a line') + (line.endsWith('\n') ? '\n' : '');
}

/** Puts a new text in the place of a file, as a whole. */
async function replace(
  { file, source }: OpenDocument,
  texts: AsyncIterable<string | Buffer>,
): Promise<void> {
  const draft = path.join(path.dirname(file), `.redacted-${randomUUID()}`);
  try {
    const { mode } = await source.stat();
    await using target = await open(draft, 'wx', mode & 0o777);
    for await (const text of texts) await target.appendFile(text);
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

interface OpenDocument {
  readonly file: string;
  readonly source: FileHandle;
}

/** Whether anything is to be done, and whether the agent's description, which may stand behind the steps, tells a secret to all of them. */
async function lookThrough(
  document: OpenDocument,
  secrets: readonly string[],
): Promise<{ readonly isChanged: boolean; readonly isTold: boolean }> {
  const redactor = new TrajectoryRedactor(secrets, { keepsNulls: true });
  const found = { isChanged: false, isTold: false };
  for await (const part of cleanedParts(document, redactor)) {
    found.isChanged ||= part.isChanged;
    if (part.field === 'agent' && part.isChanged)
      found.isTold ||= redactor.holds(
        (parsePart(document.file, part.original) as Partial<AtifAgent>).tool_definitions,
      );
  }
  return found;
}

interface CleanedPart extends DocumentPart {
  readonly isChanged: boolean;
  readonly original: DocumentPart;
}

async function* cleanedParts(
  { file, source }: OpenDocument,
  redactor: TrajectoryRedactor,
): AsyncGenerator<CleanedPart> {
  for await (const original of readParts(file, source)) {
    const { field } = original;
    const value = parsePart(file, original);
    const cleaned = cleanedValue(redactor, field, value);
    if (isDeepStrictEqual(cleaned, value)) yield { ...original, isChanged: false, original };
    else {
      const text = atifText(cleaned, field === null ? 2 : 1, field ?? 'a step');
      yield { field, text, isChanged: true, original };
    }
  }
}

function cleanedValue(redactor: TrajectoryRedactor, field: string | null, value: unknown): unknown {
  if (!isObject(value) && field !== 'subagent_trajectories') return redactor.clean(value);
  // Only what is read is assumed of the shape: the author may be anybody.
  if (field === null) return redactor.step(value as AtifStep);
  if (field === 'agent') return redactor.agent(value as AtifAgent);
  if (field === 'extra') return (redactor.clean({ extra: value }) as { extra: unknown }).extra;
  if (field === 'subagent_trajectories' && Array.isArray(value))
    return value.map((embedded: unknown) => cleanedEmbedded(redactor.another(), embedded));
  return redactor.clean(value);
}

function cleanedEmbedded(redactor: TrajectoryRedactor, document: unknown): unknown {
  if (!isObject(document)) return redactor.clean(document);
  return Object.fromEntries(
    Object.entries(document).map(([field, value]) => [
      field,
      field === 'steps' && Array.isArray(value)
        ? value.map((step: unknown) => cleanedValue(redactor, null, step))
        : cleanedValue(redactor, field, value),
    ]),
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The document again, of its parts in their order. */
async function* documentTexts(parts: AsyncIterable<DocumentPart>): AsyncGenerator<string> {
  let isInSteps = false;
  let separator = '{\n  ';
  for await (const { field, text } of parts) {
    if (field === null) {
      yield isInSteps ? `,\n    ${text}` : `${separator}"steps": [\n    ${text}`;
      isInSteps = true;
    } else {
      yield `${isInSteps ? '\n  ],\n  ' : separator}${JSON.stringify(field)}: ${text}`;
      isInSteps = false;
    }
    separator = ',\n  ';
  }
  yield `${isInSteps ? '\n  ]' : ''}\n}\n`;
}
