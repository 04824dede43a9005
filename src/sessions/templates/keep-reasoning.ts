/**
 * Many templates leave out what a model thought in earlier turns as soon as a user speaks again. A history is then not append-only: ids that were sampled
 * would have to go. Here the question "does this message stand behind the last user?" is answered with yes in the parsed template of the checkpoint, so that
 * every turn stays as it was sampled. Nothing else of the template changes.
 */
import type { Expression, Statement } from './jinja-nodes.ts';

export interface KeptReasoning {
  readonly statements: readonly Statement[];
  /** How many questions were answered; 0 = the template does not ask in a way that we know. */
  readonly changes: number;
}

export function keepReasoning(statements: readonly Statement[]): KeptReasoning {
  let changes = 0;
  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.filter((part) => !isQueryDemand(part)).map(visit);
    if (typeof node !== 'object' || node === null || !('kind' in node)) return node;
    if (node.kind === 'literal') return node;
    const expression = node as Expression;
    if (isBehindLastUser(expression) || isLastOrThoughtful(expression)) {
      changes += 1;
      return { kind: 'literal', value: true } satisfies Expression;
    }
    return Object.fromEntries(Object.entries(node).map(([key, part]) => [key, visit(part)]));
  };
  // The copy has the shape of what was copied.
  return { statements: visit(statements) as readonly Statement[], changes };
}

/** `loop.index0 > ns.last_query_index`, or `last_user_index`. */
function isBehindLastUser(node: Expression): boolean {
  if (node.kind !== 'compare') return false;
  const [only, ...others] = node.rest;
  if (only === undefined || others.length > 0 || only[0] !== '>') return false;
  const [, bound] = only;
  return isField(node.first, /^index0$/) && isField(bound, /^last_(?:query|user)_index$/);
}

/** `loop.last or (not loop.last and …)`: a turn without thoughts has the empty marks of them too. */
function isLastOrThoughtful(node: Expression): boolean {
  if (node.kind !== 'binary' || node.operator !== 'or') return false;
  const { left, right } = node;
  if (!isField(left, /^last$/) || right.kind !== 'binary' || right.operator !== 'and') return false;
  return (
    right.left.kind === 'unary' &&
    right.left.operator === 'not' &&
    isField(right.left.operand, /^last$/)
  );
}

/** A demand that some user has spoken: the few messages that a suffix is rendered with have none. */
function isQueryDemand(node: unknown): boolean {
  if (typeof node !== 'object' || node === null || !('kind' in node) || node.kind !== 'if')
    return false;
  const { branches, otherwise } = node as Statement & { readonly kind: 'if' };
  const [only, ...others] = branches;
  if (only === undefined || others.length > 0 || otherwise.length > 0) return false;
  const [condition, body] = only;
  return (
    isField(condition, /^multi_step_tool$/) &&
    body.every(
      (statement) =>
        (statement.kind === 'output' && isRefusal(statement.value)) ||
        (statement.kind === 'text' && statement.text.trim() === ''),
    )
  );
}

const isRefusal = (value: Expression): boolean =>
  value.kind === 'call' && value.target.kind === 'name' && value.target.name === 'raise_exception';

const isField = (node: Expression, name: RegExp): boolean =>
  node.kind === 'attribute' && node.target.kind === 'name' && name.test(node.name);
