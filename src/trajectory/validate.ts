/** Checks trajectories as Harbor's validator does: all errors at once, with its locations. */
import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import path from 'node:path';
import { RolloutError } from '../core/errors.ts';
import { readTrajectory } from '../wire/atif/models.ts';
import type { AtifTrajectory } from '../wire/atif/atif.ts';
import { isSpillFile, recoverTrajectory } from './spill.ts';

/** What is wrong with a document, one line each; empty = valid. */
export function validateTrajectory(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return ['Trajectory must be a JSON object/dict'];
  const read = readTrajectory(value);
  if ('trajectory' in read) return [];
  return read.problems.map(({ location, message }) => `trajectory.${location}: ${message}`);
}

/** As {@link validateTrajectory} for a file, whose images must exist beside it unless `checksImages` is false. Rejects when it cannot be read. */
export async function validateTrajectoryFile(
  file: string,
  { checksImages }: { readonly checksImages: boolean },
): Promise<readonly string[]> {
  const read = await readValue(file);
  if ('problem' in read) return [read.problem];
  const problems = validateTrajectory(read.value);
  return checksImages
    ? [...problems, ...(await imageProblems(read.value, path.dirname(file)))]
    : problems;
}

/** A document of any version, or the spill of one. TRAJECTORY_INVALID lists in its detail all that is wrong. */
export async function loadTrajectory(file: string): Promise<AtifTrajectory> {
  const read = await readValue(file);
  const problems = 'problem' in read ? [read.problem] : validateTrajectory(read.value);
  const reading = 'problem' in read ? null : readTrajectory(read.value);
  if (reading !== null && 'trajectory' in reading) return reading.trajectory;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  throw new RolloutError('TRAJECTORY_INVALID', `${file}: ${problems[0] ?? ''}${more}`, {
    phase: 'config',
    field: file,
    detail: problems.join('\n'),
  });
}

async function readValue(
  file: string,
): Promise<{ readonly value: unknown } | { readonly problem: string }> {
  if (isSpillFile(file)) return { value: await recoverTrajectory(file) };
  const content = await readFile(file, 'utf8');
  try {
    return { value: JSON.parse(content) as unknown };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { problem: `Invalid JSON: ${error.message}` };
  }
}

/** Images of messages and observations whose file is missing; the document may be wrong in any way. */
async function imageProblems(document: unknown, dir: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const [index, step] of listAt(document, 'steps').entries()) {
    const at = `trajectory.steps[${index}]`;
    const contents: (readonly [string, unknown])[] = [[`${at}.message`, fieldOf(step, 'message')]];
    for (const [place, result] of listAt(fieldOf(step, 'observation'), 'results').entries())
      contents.push([`${at}.observation.results[${place}].content`, fieldOf(result, 'content')]);
    for (const [location, content] of contents)
      for (const [place, part] of (Array.isArray(content) ? content : []).entries()) {
        const image = imagePath(part);
        if (image !== null && !(await exists(path.resolve(dir, image))))
          missing.push(
            `${location}[${place}].source.path: referenced image file does not exist: ${image}`,
          );
      }
  }
  return missing;
}

/** Path of a local image; null = no image, or one behind an address. */
function imagePath(part: unknown): string | null {
  if (fieldOf(part, 'type') !== 'image') return null;
  const image = fieldOf(fieldOf(part, 'source'), 'path');
  return typeof image === 'string' && image !== '' && !image.includes('://') ? image : null;
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Readonly<Record<string, unknown>>)[key]
    : undefined;
}

function listAt(value: unknown, key: string): readonly unknown[] {
  const list = fieldOf(value, key);
  return Array.isArray(list) ? list : [];
}

async function exists(file: string): Promise<boolean> {
  try {
    await access(file, constants.F_OK);
    return true;
  } catch {
    return false;
  }
}
