import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatRequest, type UpstreamRules } from '../../../src/gateway/items/chat-request.ts';
import type { Conversation } from '../../../src/gateway/items/conversation.ts';
import { RequestProblem } from '../../../src/gateway/dialects/dialect.ts';
import { ToolNames } from '../../../src/gateway/items/tool-names.ts';
import { chatBody } from '../../../src/engines/shared/chat-request.ts';
import { calls, conversation, says, toolSpec } from './conversations.ts';

const run = toolSpec('run');
const close = toolSpec('close', { namespace: 'agents' });
const hello = [{ role: 'user', content: 'Hello' }];
const schema = { type: 'object', properties: { title: { type: 'string' } } };

/** As it goes out. */
function bodyOf(fields: Partial<Conversation>, rules: Partial<UpstreamRules> = {}): object {
  const asked = conversation(fields);
  const request = chatRequest(asked, new ToolNames(asked.tools), rules);
  return JSON.parse(
    JSON.stringify(
      chatBody(
        { requestId: 'r', model: null, isStreaming: false, wantsTokens: false, ...request },
        request.input,
      ),
    ),
  ) as object;
}

const rows: readonly {
  readonly title: string;
  readonly asked: Partial<Conversation>;
  readonly rules?: Partial<UpstreamRules>;
  readonly body: object;
}[] = [
  { title: 'nothing that the client does not say', asked: {}, body: {} },
  {
    title: 'the sampling parameters',
    asked: { sampling: { maxTokens: 9, temperature: 0, topP: 0.5, topK: 4, stop: ['END'] } },
    body: { max_tokens: 9, temperature: 0, top_p: 0.5, top_k: 4, stop: ['END'] },
  },
  {
    title: 'the limit under the name that the upstream knows',
    asked: { sampling: { maxTokens: 9, topP: 1 } },
    rules: { limitField: 'max_completion_tokens' },
    body: { max_completion_tokens: 9, top_p: 1 },
  },
  { title: 'the effort', asked: { reasoningEffort: 'low' }, body: { reasoning_effort: 'low' } },
  {
    title: 'a schema with its strictness',
    asked: {
      format: { kind: 'schema', name: 'title', description: null, schema, isStrict: false },
    },
    body: {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'title', schema, strict: false },
      },
    },
  },
  {
    title: 'a strict schema with its description',
    asked: {
      format: { kind: 'schema', name: 'title', description: 'Short', schema, isStrict: true },
    },
    body: {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'title', description: 'Short', schema, strict: true },
      },
    },
  },
  {
    title: 'plain JSON',
    asked: { format: { kind: 'json' } },
    body: { response_format: { type: 'json_object' } },
  },
  {
    title: 'tools without parameters as tools of an empty object',
    asked: { tools: [run] },
    body: {
      tools: [
        {
          type: 'function',
          function: { name: 'run', parameters: { type: 'object', properties: {} } },
        },
      ],
    },
  },
  {
    title: 'tools with all that they have',
    asked: {
      tools: [toolSpec('run', { description: 'Runs', parameters: schema, isStrict: true })],
    },
    body: {
      tools: [
        {
          type: 'function',
          function: { name: 'run', description: 'Runs', parameters: schema, strict: true },
        },
      ],
    },
  },
  {
    title: 'a custom tool as a function with one string',
    asked: { tools: [toolSpec('patch', { form: 'custom' })] },
    body: {
      tools: [
        {
          type: 'function',
          function: {
            name: 'patch',
            parameters: {
              type: 'object',
              properties: { input: { type: 'string' } },
              required: ['input'],
            },
          },
        },
      ],
    },
  },
];

const choices: readonly { readonly choice: Conversation['toolChoice']; readonly sent: unknown }[] =
  [
    { choice: { kind: 'auto' }, sent: 'auto' },
    { choice: { kind: 'none' }, sent: 'none' },
    { choice: { kind: 'required' }, sent: 'required' },
    {
      choice: { kind: 'tool', tool: { name: 'close', namespace: 'agents' } },
      sent: { type: 'function', function: { name: 'agents__close' } },
    },
  ];

describe('the request upstream', () => {
  for (const { title, asked, rules = {}, body } of rows)
    it(`has ${title}`, () => {
      assert.deepEqual(bodyOf(asked, rules), { messages: hello, stream: false, ...body });
    });

  for (const { choice, sent } of choices)
    it(`spells the choice ${JSON.stringify(choice)} as ${JSON.stringify(sent)}`, () => {
      const body = bodyOf({
        tools: [run, close],
        toolChoice: choice,
        allowsParallelToolCalls: false,
      });
      assert.deepEqual((body as Record<string, unknown>)['tool_choice'], sent);
      assert.equal((body as Record<string, unknown>)['parallel_tool_calls'], false);
    });

  it('does not choose among no tools', () => {
    const fields = { toolChoice: { kind: 'auto' }, allowsParallelToolCalls: true } as const;
    assert.deepEqual(bodyOf(fields), { messages: hello, stream: false });
  });

  it('qualifies calls of the history, and wraps the raw input of custom ones', () => {
    const [call] = [calls('c1', 'patch', 'a\nb')];
    const items = [
      { ...call, form: 'custom' },
      { ...calls('c2'), tool: { name: 'close', namespace: 'agents' } },
    ] as Conversation['items'];
    const { messages } = bodyOf({ items }) as { messages: readonly Record<string, unknown>[] };
    assert.deepEqual(messages[0]?.['tool_calls'], [
      { id: 'c1', type: 'function', function: { name: 'patch', arguments: '{"input":"a\\nb"}' } },
      { id: 'c2', type: 'function', function: { name: 'agents__close', arguments: '{}' } },
    ]);
  });

  const refused: readonly { title: string; asked: Partial<Conversation>; field: string | null }[] =
    [
      {
        title: 'a conversation that says nothing',
        asked: { items: [says('user', '')] },
        field: null,
      },
      {
        title: 'a demand for a call without tools',
        asked: { toolChoice: { kind: 'required' } },
        field: 'tool_choice',
      },
      {
        title: 'the choice of a tool that is not there',
        asked: {
          tools: [run],
          toolChoice: { kind: 'tool', tool: { name: 'close', namespace: null } },
        },
        field: 'tool_choice',
      },
    ];
  for (const { title, asked, field } of refused)
    it(`refuses ${title}, by the field's name`, () => {
      assert.throws(
        () => bodyOf(asked),
        (error: unknown) => error instanceof RequestProblem && error.problem.field === field,
      );
    });
});
