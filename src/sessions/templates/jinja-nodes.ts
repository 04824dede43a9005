/** The tree of a parsed template. */
import type { Value } from './python-values.ts';

export type Expression =
  | { readonly kind: 'literal'; readonly value: Value }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'list' | 'tuple'; readonly items: readonly Expression[] }
  | { readonly kind: 'dict'; readonly entries: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: 'attribute'; readonly target: Expression; readonly name: string }
  | { readonly kind: 'item'; readonly target: Expression; readonly key: Expression }
  | {
      readonly kind: 'slice';
      readonly target: Expression;
      readonly parts: readonly [Expression | null, Expression | null, Expression | null];
    }
  | { readonly kind: 'call'; readonly target: Expression; readonly given: GivenArguments }
  | {
      readonly kind: 'filter' | 'test';
      readonly name: string;
      readonly target: Expression;
      readonly given: GivenArguments;
    }
  | { readonly kind: 'unary'; readonly operator: 'not' | '-' | '+'; readonly operand: Expression }
  | {
      readonly kind: 'binary';
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: 'compare';
      readonly first: Expression;
      readonly rest: readonly (readonly [CompareOperator, Expression])[];
    }
  | {
      readonly kind: 'choice';
      readonly condition: Expression;
      readonly then: Expression;
      readonly otherwise: Expression | null;
    };

export type BinaryOperator = 'and' | 'or' | '+' | '-' | '*' | '/' | '//' | '%' | '**' | '~';
export type CompareOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in';

export interface GivenArguments {
  readonly positional: readonly Expression[];
  readonly named: readonly (readonly [string, Expression])[];
}

/** What is assigned to: a name, a field of a namespace, or several at once. */
export type Target =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'field'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'several'; readonly targets: readonly Target[] };

export type Statement =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'output'; readonly value: Expression }
  | {
      readonly kind: 'if';
      readonly branches: readonly (readonly [Expression, readonly Statement[]])[];
      readonly otherwise: readonly Statement[];
    }
  | ForStatement
  | { readonly kind: 'set'; readonly target: Target; readonly value: Expression }
  | {
      readonly kind: 'set-block';
      readonly target: Target;
      readonly body: readonly Statement[];
      readonly filters: FilterChain;
    }
  | MacroStatement
  | {
      readonly kind: 'filter-block';
      readonly filters: FilterChain;
      readonly body: readonly Statement[];
    }
  /** `generation` marks what a model wrote; it changes nothing of the text. */
  | { readonly kind: 'group'; readonly body: readonly Statement[] }
  | { readonly kind: 'break' | 'continue' };

export type FilterChain = readonly { readonly name: string; readonly given: GivenArguments }[];

export interface ForStatement {
  readonly kind: 'for';
  readonly target: Target;
  readonly items: Expression;
  readonly condition: Expression | null;
  readonly body: readonly Statement[];
  readonly otherwise: readonly Statement[];
}

export interface MacroStatement {
  readonly kind: 'macro';
  readonly name: string;
  readonly parameters: readonly { readonly name: string; readonly initial: Expression | null }[];
  readonly body: readonly Statement[];
}
