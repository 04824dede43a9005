import { z } from 'zod';
import { nullable } from '../lax.ts';
import { crossCheck, table, type CrossProblem, type PartlyChecked } from './table.ts';

const service = z
  .string()
  .trim()
  .regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/, 'is not a service name')
  .transform((name) => (name === 'main' ? null : name));

const source = z
  .string()
  .refine((path) => !path.split(/[/\\]/).includes('..'), 'must not contain ".."');

const destination = z.string().transform((path, context) => {
  if (path === '') return null;
  const problem = destinationProblem(path);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  return path;
});

function destinationProblem(path: string): string | null {
  if (path.includes('\\')) return 'uses forward slashes only';
  if (path.startsWith('/')) return 'must be relative to the artifacts folder';
  const components = path.split('/').filter((part) => part !== '' && part !== '.');
  if (components.length === 0) return 'names no file';
  if (components.includes('..')) return 'must not contain ".."';
  if (path.replace(/\/+$/, '') === 'manifest.json') return 'manifest.json is written by the runner';
  return null;
}

const artifactTable = z
  .object({
    source,
    destination: nullable(destination),
    exclude: z.array(z.string()).default([]),
    service: nullable(service),
  })
  .check(crossCheck(serviceSourceProblems));

function serviceSourceProblems(fields: PartlyChecked): readonly CrossProblem[] {
  const { service: name, source: path } = fields;
  if (typeof name !== 'string' || typeof path !== 'string' || isAbsolute(path)) return [];
  return [{ path: ['source'], message: 'must be absolute for a service other than main' }];
}

function isAbsolute(path: string): boolean {
  return path.startsWith('/') || /^[a-zA-Z]:[/\\]/.test(path);
}

/** An entry of `artifacts`: a path, or a table. `service` null = the agent's container; `destination` null = mirror the source. */
export const artifactEntry = z.preprocess(
  (entry) => (typeof entry === 'string' ? { source: entry } : entry),
  table(artifactTable),
);
export type ArtifactEntry = z.output<typeof artifactEntry>;
