/**
 * Variables in the `env` tables of a task. A value is a template only when all of it is `${NAME}` or `${NAME:-default}`;
 * `prefix_${NAME}`, `$NAME` and `${` stay what they are. Templates see the variables they are given, nothing else.
 */
import { RolloutError } from '../core/errors.ts';
import type { Task, TemplateMap, VerifierSection } from './task.ts';

export type Variables = Readonly<Record<string, string | undefined>>;

interface Template {
  readonly variable: string;
  readonly fallback: string | null;
}

/** What a value refers to; null for a literal. */
export function parseTemplate(value: string): Template | null {
  const match = /^\$\{([^}:]+)(?::-(.*))?\}$/s.exec(value);
  if (match?.[1] === undefined) return null;
  return { variable: match[1], fallback: match[2] ?? null };
}

/**
 * Resolves every value of a table. A set variable counts even when it is empty; an unset one without a default rejects with
 * VARIABLE_UNSET. `field` is the dotted path of the table, for messages; no value ever appears in one.
 */
export function resolveTemplates(
  templates: TemplateMap,
  variables: Variables,
  field: string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(templates).map(([key, value]) => [
      key,
      resolveTemplate(value, variables, `${field}.${key}`),
    ]),
  );
}

function resolveTemplate(value: string, variables: Variables, field: string): string {
  const template = parseTemplate(value);
  if (template === null) return value;
  const { variable, fallback } = template;
  const found = Object.hasOwn(variables, variable) ? variables[variable] : undefined;
  const resolved = found ?? fallback;
  if (resolved !== null) return resolved;
  throw new RolloutError('VARIABLE_UNSET', `the variable ${variable} is not set`, {
    phase: 'config',
    field,
    remedy: `Set ${variable}, or give the template a default: \${${variable}:-…}.`,
  });
}

/** A template in one of a task's tables. */
export interface VariableReference {
  readonly variable: string;
  readonly hasDefault: boolean;
  /** Which table, so that a caller can leave out what a run-level table overrides. */
  readonly scope: 'environment' | 'verifier' | 'verifier-environment' | 'solution';
  /** Key within the table. */
  readonly key: string;
  /** Dotted path: `verifier.env.API_KEY`, `steps[1].verifier.env.API_KEY`. */
  readonly field: string;
}

/** Every variable a task asks its host for. Those of scope `solution` matter only where the oracle runs. */
export function referencedVariables(task: Task): readonly VariableReference[] {
  return [
    ...references(task.environment.env, 'environment', 'environment.env'),
    ...verifierReferences(task.verifier, 'verifier'),
    ...task.steps.flatMap((step, index) =>
      verifierReferences(step.verifier, `steps[${index}].verifier`),
    ),
    ...references(task.solutionEnv, 'solution', 'solution.env'),
  ];
}

/** An inherited verifier environment repeats `[environment]`: it adds nothing. */
function verifierReferences(section: VerifierSection, field: string): readonly VariableReference[] {
  const own = section.isEnvironmentInherited ? null : section.environment;
  return [
    ...references(section.env, 'verifier', `${field}.env`),
    ...references(own?.env ?? {}, 'verifier-environment', `${field}.environment.env`),
  ];
}

function references(
  templates: TemplateMap,
  scope: VariableReference['scope'],
  field: string,
): readonly VariableReference[] {
  return Object.entries(templates).flatMap(([key, value]) => {
    const template = parseTemplate(value);
    if (template === null) return [];
    const { variable, fallback } = template;
    return [{ variable, hasDefault: fallback !== null, scope, key, field: `${field}.${key}` }];
  });
}
