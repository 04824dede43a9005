/** Ways to break the rich document, one each, and what the validators say about them. */

export interface Mutation {
  readonly title: string;
  readonly change: (document: object) => void;
  /** Where the document is refused; `list[ContentPart]` stands for what the validators call it. */
  readonly at: readonly string[];
  /** What `atif` says instead, and why. */
  readonly atif?: { readonly at: readonly string[]; readonly because: string };
}

/** The object that holds the last part of a dotted path, and that part. */
function placeIn(document: object, path: string): readonly [object, string] {
  const parts = path.split('.');
  const last = parts.pop() ?? '';
  return [parts.reduce((value, part) => Reflect.get(value, part) as object, document), last];
}

export function set(path: string, value: unknown): (document: object) => void {
  return (document) => Reflect.set(...placeIn(document, path), value);
}

export function drop(path: string): (document: object) => void {
  return (document) => Reflect.deleteProperty(...placeIn(document, path));
}

const noLink =
  'its models link results to calls within the step, and only when the step has tool calls';
const audio = 'it knows version 1.8, where content may be audio';

export const mutations: readonly Mutation[] = [
  { title: 'no agent', change: drop('agent'), at: ['agent'] },
  { title: 'no steps', change: drop('steps'), at: ['steps'] },
  {
    title: 'an empty list of steps',
    change: set('steps', []),
    at: ['steps'],
    atif: { at: [], because: 'it allows a document without steps' },
  },
  { title: 'steps as an object', change: set('steps', {}), at: ['steps'] },
  { title: 'steps as null', change: set('steps', null), at: ['steps'] },
  {
    title: 'an unknown version',
    change: set('schema_version', 'ATIF-v1.9'),
    at: ['schema_version'],
    atif: { at: [], because: 'it takes any text for a version' },
  },
  {
    title: 'version 1.8',
    change: set('schema_version', 'ATIF-v1.8'),
    at: ['schema_version'],
    atif: { at: [], because: 'it takes any text for a version' },
  },
  { title: 'a number as version', change: set('schema_version', 1.7), at: ['schema_version'] },
  { title: 'null as version', change: set('schema_version', null), at: ['schema_version'] },
  { title: 'a number as session', change: set('session_id', 7), at: ['session_id'] },
  { title: 'a list as document id', change: set('trajectory_id', []), at: ['trajectory_id'] },
  { title: 'an unknown root field', change: set('reward', 1), at: ['reward'] },
  { title: 'an agent that is text', change: set('agent', 'tester'), at: ['agent'] },
  { title: 'an agent without name', change: drop('agent.name'), at: ['agent.name'] },
  {
    title: 'an agent without version',
    change: set('agent.version', null),
    at: ['agent.version'],
  },
  { title: 'an unknown agent field', change: set('agent.id', 1), at: ['agent.id'] },
  {
    title: 'a tool definition that is text',
    change: set('agent.tool_definitions.0', 'run'),
    at: ['agent.tool_definitions.0'],
  },
  { title: 'agent extra as a list', change: set('agent.extra', []), at: ['agent.extra'] },
  { title: 'a step that is text', change: set('steps.1', 'hi'), at: ['steps.1'] },
  {
    title: 'a step without number',
    change: drop('steps.0.step_id'),
    at: ['steps.0.step_id'],
  },
  { title: 'step number 0', change: set('steps.0.step_id', 0), at: ['steps.0.step_id'] },
  {
    title: 'half a step number',
    change: set('steps.0.step_id', 1.5),
    at: ['steps.0.step_id'],
  },
  {
    title: 'a word as step number',
    change: set('steps.0.step_id', 'one'),
    at: ['steps.0.step_id'],
  },
  {
    title: 'a list as step number',
    change: set('steps.0.step_id', [1]),
    at: ['steps.0.step_id'],
  },
  { title: 'a gap between steps', change: set('steps.3.step_id', 5), at: [''] },
  { title: 'two steps of one number', change: set('steps.1.step_id', 1), at: [''] },
  { title: 'no source', change: drop('steps.1.source'), at: ['steps.1.source'] },
  {
    title: 'an unknown source',
    change: set('steps.1.source', 'tool'),
    at: ['steps.1.source'],
  },
  {
    title: 'a source in capitals',
    change: set('steps.2.source', 'Agent'),
    at: ['steps.2.source'],
  },
  { title: 'no message', change: drop('steps.0.message'), at: ['steps.0.message'] },
  {
    title: 'a null message',
    change: set('steps.0.message', null),
    at: ['steps.0.message.str', 'steps.0.message.list[ContentPart]'],
  },
  {
    title: 'a number as message',
    change: set('steps.0.message', 5),
    at: ['steps.0.message.str', 'steps.0.message.list[ContentPart]'],
  },
  {
    title: 'a text part without text',
    change: drop('steps.1.message.0.text'),
    at: ['steps.1.message.str', 'steps.1.message.list[ContentPart].0'],
  },
  {
    title: 'an image part with text',
    change: set('steps.1.message.1.text', 'x'),
    at: ['steps.1.message.str', 'steps.1.message.list[ContentPart].1'],
  },
  {
    title: 'an image part without source',
    change: drop('steps.1.message.1.source'),
    at: ['steps.1.message.str', 'steps.1.message.list[ContentPart].1'],
  },
  {
    title: 'a part of an unknown type',
    change: set('steps.1.message.0.type', 'audio'),
    at: ['steps.1.message.str', 'steps.1.message.list[ContentPart].0.type'],
    atif: {
      at: ['steps.1.message.str', 'steps.1.message.list[ContentPart].0'],
      because: audio,
    },
  },
  {
    title: 'an image of an unknown type',
    change: set('steps.1.message.1.source.media_type', 'image/tiff'),
    at: ['steps.1.message.str', 'steps.1.message.list[ContentPart].1.source.media_type'],
    atif: {
      at: [
        'steps.1.message.str',
        'steps.1.message.list[ContentPart].1.source.ImageSource.media_type',
        'steps.1.message.list[ContentPart].1.source.AudioSource.media_type',
      ],
      because: audio,
    },
  },
  {
    title: 'an image without path',
    change: drop('steps.1.message.1.source.path'),
    at: ['steps.1.message.str', 'steps.1.message.list[ContentPart].1.source.path'],
    atif: {
      at: [
        'steps.1.message.str',
        'steps.1.message.list[ContentPart].1.source.ImageSource.path',
        'steps.1.message.list[ContentPart].1.source.AudioSource.media_type',
        'steps.1.message.list[ContentPart].1.source.AudioSource.path',
      ],
      because: audio,
    },
  },
  {
    title: 'a time that is none',
    change: set('steps.0.timestamp', 'yesterday'),
    at: ['steps.0.timestamp'],
  },
  {
    title: 'a time as a number',
    change: set('steps.0.timestamp', 1767225600),
    at: ['steps.0.timestamp'],
  },
  ...['model_name', 'reasoning_effort', 'reasoning_content'].map((field) => ({
    title: `${field} on a user step`,
    change: set(`steps.1.${field}`, 'x'),
    at: ['steps.1'],
  })),
  {
    title: 'tool calls on a user step',
    change: set('steps.1.tool_calls', []),
    at: ['steps.1'],
  },
  { title: 'metrics on a system step', change: set('steps.0.metrics', {}), at: ['steps.0'] },
  { title: 'metrics without a call', change: set('steps.3.metrics', {}), at: ['steps.3'] },
  {
    title: 'reasoning without a call',
    change: set('steps.3.reasoning_content', ''),
    at: ['steps.3'],
  },
  {
    title: 'fewer than no calls',
    change: set('steps.2.llm_call_count', -1),
    at: ['steps.2.llm_call_count'],
  },
  {
    title: 'an effort that is a list',
    change: set('steps.2.reasoning_effort', []),
    at: ['steps.2.reasoning_effort.str', 'steps.2.reasoning_effort.float'],
  },
  {
    title: 'a flag that is a word',
    change: set('steps.2.is_copied_context', 'maybe'),
    at: ['steps.2.is_copied_context'],
  },
  {
    title: 'a flag that is 2',
    change: set('steps.2.is_copied_context', 2),
    at: ['steps.2.is_copied_context'],
  },
  { title: 'step extra as text', change: set('steps.2.extra', 'x'), at: ['steps.2.extra'] },
  { title: 'an unknown step field', change: set('steps.2.role', 'x'), at: ['steps.2.role'] },
  {
    title: 'a call without id',
    change: drop('steps.2.tool_calls.0.tool_call_id'),
    at: ['steps.2.tool_calls.0.tool_call_id'],
  },
  {
    title: 'a call without function',
    change: drop('steps.2.tool_calls.1.function_name'),
    at: ['steps.2.tool_calls.1.function_name'],
  },
  {
    title: 'arguments as text',
    change: set('steps.2.tool_calls.0.arguments', '{}'),
    at: ['steps.2.tool_calls.0.arguments'],
  },
  {
    title: 'a call in another style',
    change: set('steps.2.tool_calls.0.type', 'function'),
    at: ['steps.2.tool_calls.0.type'],
  },
  {
    title: 'an observation without results',
    change: set('steps.2.observation', {}),
    at: ['steps.2.observation.results'],
  },
  {
    title: 'an observation that is text',
    change: set('steps.2.observation', 'a.txt'),
    at: ['steps.2.observation'],
  },
  {
    title: 'a result for a call of nobody',
    change: set('steps.2.observation.results.0.source_call_id', 'call_9'),
    at: [''],
    atif: { at: ['steps.2'], because: noLink },
  },
  {
    title: 'a result for a call of another step',
    change: set('steps.0.observation.results.0.source_call_id', 'call_0_1'),
    at: [''],
    atif: { at: [], because: noLink },
  },
  {
    title: 'a result whose content is a number',
    change: set('steps.2.observation.results.0.content', 3),
    at: [
      'steps.2.observation.results.0.content.str',
      'steps.2.observation.results.0.content.list[ContentPart]',
    ],
  },
  {
    title: 'a reference by session alone',
    change: drop('steps.2.observation.results.2.subagent_trajectory_ref.0.trajectory_id'),
    at: ['steps.2.observation.results.2.subagent_trajectory_ref.0'],
  },
  {
    title: 'a reference that is no list',
    change: set('steps.2.observation.results.2.subagent_trajectory_ref', { trajectory_id: 'x' }),
    at: ['steps.2.observation.results.2.subagent_trajectory_ref'],
  },
  {
    title: 'half a token',
    change: set('steps.2.metrics.prompt_tokens', 5.5),
    at: ['steps.2.metrics.prompt_tokens'],
  },
  {
    title: 'a token id that is a word',
    change: set('steps.2.metrics.completion_token_ids.1', 'seven'),
    at: ['steps.2.metrics.completion_token_ids.1'],
  },
  {
    title: 'a token id that is null',
    change: set('steps.2.metrics.prompt_token_ids.4', null),
    at: ['steps.2.metrics.prompt_token_ids.4'],
  },
  {
    title: 'a log-probability that is an object',
    change: set('steps.2.metrics.logprobs.0', {}),
    at: ['steps.2.metrics.logprobs.0'],
  },
  {
    title: 'a cost with its unit',
    change: set('steps.2.metrics.cost_usd', '1 USD'),
    at: ['steps.2.metrics.cost_usd'],
  },
  {
    title: 'an unknown metric',
    change: set('steps.2.metrics.reward', 1),
    at: ['steps.2.metrics.reward'],
  },
  {
    title: 'fewer than no steps in the totals',
    change: set('final_metrics.total_steps', -1),
    at: ['final_metrics.total_steps'],
    atif: { at: [], because: 'it sets no bound for the number of steps' },
  },
  { title: 'totals as a list', change: set('final_metrics', []), at: ['final_metrics'] },
  {
    title: 'an unknown total',
    change: set('final_metrics.total_reward', 1),
    at: ['final_metrics.total_reward'],
  },
  {
    title: 'an embedded trajectory without id',
    change: drop('subagent_trajectories.0.trajectory_id'),
    at: [''],
  },
  {
    title: 'two embedded trajectories of one id',
    change: set('subagent_trajectories.1.trajectory_id', 'sub-1'),
    at: [''],
  },
  {
    title: 'a gap in an embedded trajectory',
    change: set('subagent_trajectories.1.steps.0.step_id', 2),
    at: ['subagent_trajectories.1'],
  },
  {
    title: 'an embedded trajectory without agent',
    change: drop('subagent_trajectories.0.agent'),
    at: ['subagent_trajectories.0.agent'],
  },
  {
    title: 'several errors, in the order of the fields',
    change: (document) => {
      for (const change of [
        set('zzz', 1),
        set('notes', 5),
        set('steps.0.step_id', 'x'),
        set('steps.3.metrics', {}),
        drop('agent.name'),
        set('agent.aaa', 1),
      ])
        change(document);
    },
    at: ['agent.name', 'agent.aaa', 'steps.0.step_id', 'steps.3', 'notes', 'zzz'],
  },
];
