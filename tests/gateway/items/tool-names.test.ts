import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolSpec } from '../../../src/gateway/items/conversation.ts';
import { RequestProblem } from '../../../src/gateway/dialects/dialect.ts';
import { ToolNames } from '../../../src/gateway/items/tool-names.ts';

function tool(name: string, rest: Partial<ToolSpec> = {}): ToolSpec {
  const none = { namespace: null, description: null, parameters: null, isStrict: null };
  return { ...none, name, form: 'function', ...rest };
}

const namesOf = (...tools: readonly ToolSpec[]): readonly string[] =>
  new ToolNames(tools).tools.map(({ name }) => name);

const rows: readonly { title: string; tools: readonly ToolSpec[]; names: readonly RegExp[] }[] = [
  {
    title: 'a legal name stays',
    tools: [tool('mcp__files__read-1')],
    names: [/^mcp__files__read-1$/],
  },
  {
    title: 'a namespace comes before',
    tools: [tool('close', { namespace: 'agents' })],
    names: [/^agents__close$/],
  },
  {
    title: 'other letters are replaced, and a hash tells them apart',
    tools: [tool('a.b'), tool('a b')],
    names: [/^a_b_[0-9a-f]{8}$/, /^a_b_[0-9a-f]{8}$/],
  },
  {
    title: 'a long name is cut to 64 characters',
    tools: [tool('x'.repeat(65))],
    names: [/^x{55}_[0-9a-f]{8}$/],
  },
  { title: 'a name of 64 characters stays', tools: [tool('x'.repeat(64))], names: [/^x{64}$/] },
  {
    title: 'letters beyond the basic plane count as one',
    tools: [tool('🙂')],
    names: [/^__[0-9a-f]{8}$/],
  },
  {
    title: 'who comes to a taken name gets a hash',
    tools: [
      tool('a__b'),
      tool('b', { namespace: 'a' }),
      tool('b__c', { namespace: 'a' }),
      tool('c', { namespace: 'a__b' }),
    ],
    names: [/^a__b$/, /^a__b_[0-9a-f]{8}$/, /^a__b__c$/, /^a__b__c_[0-9a-f]{8}$/],
  },
];

describe('names of tools upstream', () => {
  for (const { title, tools, names } of rows)
    it(`follow the rule that ${title}, and lead back to the tool`, () => {
      const all = new ToolNames(tools);
      assert.equal(new Set(namesOf(...tools)).size, tools.length);
      for (const [index, { name, spec }] of all.tools.entries()) {
        assert.match(name, names[index] ?? /$^/);
        assert.ok(name.length <= 64);
        const identity = { name: spec.name, namespace: spec.namespace };
        assert.equal(all.upstream(identity), name);
        assert.deepEqual(all.client(name), { tool: identity, form: spec.form });
      }
    });

  it('stay what they were when tools join behind them', () => {
    const first = [tool('a.b'), tool('b', { namespace: 'a' }), tool('run', { form: 'custom' })];
    const later = [...first, tool('a__b'), tool('b.', { namespace: 'a' }), tool('a_b')];
    assert.deepEqual(namesOf(...later).slice(0, first.length), namesOf(...first));
  });

  it('of a tool that only the history knows are made by the same rule', () => {
    const names = new ToolNames([tool('run')]);
    assert.equal(names.upstream({ name: 'close', namespace: 'agents' }), 'agents__close');
    assert.equal(names.has({ name: 'close', namespace: 'agents' }), false);
  });

  it('that the model makes up stay as they are', () => {
    assert.deepEqual(new ToolNames([]).client('agents__fly'), {
      tool: { name: 'agents__fly', namespace: null },
      form: 'function',
    });
  });

  it('count a tool that is declared twice in the same words once', () => {
    assert.deepEqual(namesOf(tool('run'), tool('run')), ['run']);
  });

  it('are refused by name where a tool is declared in two ways', () => {
    assert.throws(
      () => new ToolNames([tool('run'), tool('run', { form: 'custom' })]),
      (error: unknown) => {
        assert.ok(error instanceof RequestProblem);
        assert.equal(error.problem.field, 'tools');
        assert.match(error.message, /"run" is declared twice/);
        return true;
      },
    );
  });
});
