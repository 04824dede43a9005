/** One turn of the agent as a step of its trajectory. */
import type { NewStep } from '../../trajectory/trajectory-log.ts';
import type { AtifToolCall } from '../../wire/atif/atif.ts';
import { cannedReply } from './context-overflow.ts';
import type { ModelReply } from './model-queries.ts';
import type { Terminus2Options } from './options.ts';
import type { ParsedReply } from './parsers/parsed-reply.ts';
import type { TrajectoryRecorder } from './trajectory-recorder.ts';

interface TurnRecord {
  readonly episode: number;
  /** null = no call of the model: the canned reply. */
  readonly reply: ModelReply | null;
  /** null = the reply could not be used; it is shown as it came. */
  readonly parsed: ParsedReply | null;
  readonly observation: string;
}

export function turnStep(
  { episode, reply, parsed, observation }: TurnRecord,
  {
    recorder,
    options,
  }: { readonly recorder: TrajectoryRecorder; readonly options: Terminus2Options },
): NewStep {
  const base: NewStep =
    reply === null
      ? { source: 'agent', message: cannedReply, timestamp: recorder.now(), llm_call_count: 0 }
      : recorder.replyStep(reply.result);
  if (parsed === null || options.isRaw)
    return { ...base, observation: { results: [{ content: observation }] } };
  const calls = toolCalls(episode, parsed);
  const isOneCommand = parsed.commands.length === 1;
  return {
    ...base,
    message: shownMessage(parsed),
    ...(calls.length > 0 && { tool_calls: calls }),
    observation: {
      results: [
        {
          ...(isOneCommand && { source_call_id: calls[0]?.tool_call_id ?? null }),
          content: observation,
        },
      ],
    },
  };
}

function shownMessage({ analysis, plan }: ParsedReply): string {
  return [analysis === '' ? '' : `Analysis: ${analysis}`, plan === '' ? '' : `Plan: ${plan}`]
    .filter((line) => line !== '')
    .join('\n');
}

function toolCalls(episode: number, parsed: ParsedReply): readonly AtifToolCall[] {
  const commands = parsed.commands.map(({ keystrokes, durationSec }, index) => ({
    tool_call_id: `call_${episode}_${index + 1}`,
    function_name: 'bash_command',
    arguments: { keystrokes, duration: durationSec },
  }));
  if (!parsed.isTaskComplete) return commands;
  return [
    ...commands,
    {
      tool_call_id: `call_${episode}_task_complete`,
      function_name: 'mark_task_complete',
      arguments: {},
    },
  ];
}
