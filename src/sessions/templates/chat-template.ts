/**
 * A chat template of a checkpoint, rendered as the Python engines render it (`transformers` with Jinja in its sandbox). What cannot be rendered alike is
 * refused by name. `strftime_now` takes the clock of whoever compiles the template.
 */
import { messageOf } from '../../core/errors.ts';
import type { Statement } from './jinja-nodes.ts';
import { runTemplate } from './jinja-run.ts';
import { formatDate } from './python-date.ts';
import { GivenValues } from './python-arguments.ts';
import {
  type Arguments,
  Callable,
  type Dict,
  Namespace,
  TemplateError,
  type Value,
} from './python-values.ts';

export interface ChatTemplate {
  /** Throws a TemplateError. */
  render(variables: Dict): string;
}

/** `statements`: of `parseTemplate`. */
export function chatTemplate(statements: readonly Statement[], now: () => Date): ChatTemplate {
  const globals = globalsWith(now);
  return {
    render: (variables) => {
      try {
        return runTemplate(statements, new Map([...globals, ...variables]));
      } catch (error) {
        if (error instanceof TemplateError) throw error;
        // Deep recursion and texts without end are faults of the template too.
        throw new TemplateError(`the template failed: ${messageOf(error)}`);
      }
    },
  };
}

function globalsWith(now: () => Date): Dict {
  const functions: readonly (readonly [string, (given: Arguments) => Value])[] = [
    ['namespace', (given) => new Namespace(namedFields('namespace', given))],
    ['dict', (given) => namedFields('dict', given)],
    ['range', (given) => range(new GivenValues('range', given).allow('start', 'stop', 'step'))],
    [
      'raise_exception',
      (given) => {
        throw new TemplateError(new GivenValues('raise_exception', given).text(0, 'message'));
      },
    ],
    [
      'strftime_now',
      (given) => formatDate(now(), new GivenValues('strftime_now', given).text(0, 'format')),
    ],
  ];
  return new Map(functions.map(([name, call]) => [name, new Callable(name, call)]));
}

function namedFields(owner: string, given: Arguments): Dict {
  const [first, ...others] = given.positional;
  if (others.length > 0 || (first !== undefined && !(first instanceof Map)))
    throw new TemplateError(`${owner} takes one dictionary and named values`);
  return new Map([...(first ?? []), ...given.named]);
}

function range(given: GivenValues): Value {
  const first = given.integer(0, 'start', 0);
  const hasStop = given.at(1, 'stop') !== undefined;
  const start = hasStop ? first : 0;
  const stop = hasStop ? given.integer(1, 'stop', 0) : first;
  const step = given.integer(2, 'step', 1);
  if (step === 0) throw given.wrong('needs a step that is not zero');
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (count > 100_000) throw given.wrong('is too long');
  return Array.from({ length: count }, (_, index) => BigInt(start + index * step));
}
