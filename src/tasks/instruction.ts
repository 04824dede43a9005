import { readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { messageOf, RolloutError } from '../core/errors.ts';

/** Takes the canary lines off the top of an instruction, and the blank lines behind them (also when there is no canary). */
export function stripCanary(text: string): string {
  const lines = text.split('\n');
  const firstPlain = lines.findIndex((line) => !isCanary(line.trim()));
  const start = lines.findIndex((line, index) => index >= firstPlain && line.trim() !== '');
  return firstPlain === -1 || start === -1 ? '' : lines.slice(start).join('\n');
}

function isCanary(line: string): boolean {
  if (!/canary/i.test(line)) return false;
  return line.startsWith('#') || (line.startsWith('<!--') && line.endsWith('-->'));
}

export interface ExtraInstructionSources {
  /** Host files; a leading `~` is the home folder. */
  readonly paths: readonly string[];
  readonly texts: readonly string[];
}

/** Text for the end of every instruction: files first, then inline texts, unchanged. CONFIG_INVALID when a file cannot be read. */
export async function readExtraInstructions(
  { paths, texts }: ExtraInstructionSources,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const files: string[] = [];
  for (const [index, file] of paths.entries()) files.push(await readExtra(file, index, signal));
  return [...files, ...texts];
}

async function readExtra(file: string, index: number, signal: AbortSignal): Promise<string> {
  try {
    return await readInstructionText(expandHome(file), signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new RolloutError('CONFIG_INVALID', `${file} cannot be read: ${messageOf(error)}`, {
      phase: 'config',
      field: `extra_instruction_paths[${index}]`,
      remedy: 'Name a readable text file.',
      cause: error,
    });
  }
}

/** A text file with line ends as `\n`. Throws what reading throws, and TypeError for bytes that are not UTF-8. */
export async function readInstructionText(file: string, signal: AbortSignal): Promise<string> {
  const bytes = await readFile(file, { signal });
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  return text.replace(/\r\n?/g, '\n');
}

function expandHome(file: string): string {
  return file === '~' || file.startsWith('~/') ? path.join(os.homedir(), file.slice(1)) : file;
}

/** The instruction as an agent gets it. */
export function composeInstruction(text: string, extra: readonly string[]): string {
  return [stripCanary(text), ...extra].join('\n\n');
}
