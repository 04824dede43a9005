import { isRolloutError } from '../../core/errors.ts';
import type { ChatCodec } from '../codec.ts';
import { conversationOf, withFields, type ChatRequest } from './chat-request.ts';
import type { Message, MessageMatcher } from './message-matcher.ts';
import { isAdditional, replayFields, type ReplayRules } from './replay.ts';
import { refusal } from './session-error.ts';
import { idsOf, respelledIn, type PreparedTurn, type TurnNode } from './turn-node.ts';

export interface TurnRules {
  readonly codec: ChatCodec;
  readonly matches: MessageMatcher;
  readonly replay: ReplayRules;
  readonly nowS: () => number;
}

/** How many messages at the front of a request are those that are stored. */
export function matchLength(
  stored: readonly Message[],
  given: readonly Message[],
  { matches, from = 0 }: { readonly matches: MessageMatcher; readonly from?: number },
): number {
  let at = 0;
  for (; at < stored.length; at += 1) {
    const [own, other] = [stored[at], given[from + at]];
    if (own === undefined || other === undefined || !isMatch(own, other, matches)) break;
  }
  return at;
}

/**
 * The prompt of a turn behind `parent`, whose messages are `stored` and stand at the front of the request: its ids, less what the family lets go of their end, and
 * the ids of the new text. SESSION_HISTORY_BROKEN for a role that may not stand there, CONVERSATION_INVALID for what the template refuses.
 */
export function prepareTurn(
  { codec, replay, nowS }: TurnRules,
  asked: ChatRequest,
  behind: { readonly parent: TurnNode | null; readonly stored: readonly Message[] },
): PreparedTurn {
  const { parent, stored } = behind;
  const known = stored.length;
  const requestedS = nowS();
  const pathLength = parent?.end ?? 0;
  const request = withFields(asked, replayFields(replay, pathLength));
  const replayStart = isAdditional(replay) ? Math.max(0, pathLength - 1) : null;
  const own = { parent, request, known, requestedS, replayStart };
  if (parent === null) {
    const { ids } = codec.render(conversationOf(request.messages, request), { opensTurn: true });
    return { ...own, promptIds: ids, kept: 0, respelled: new Map() };
  }
  const appended = request.messages.slice(known);
  for (const [at, { role }] of appended.entries())
    if (!codec.appendRoles.has(String(role)))
      throw refusal(
        'SESSION_HISTORY_BROKEN',
        `a message of role '${String(role)}' cannot stand behind a sampled turn (allowed: ${[...codec.appendRoles].join(', ')}); the selected TITO fixed template does not support appending this role`,
        { field: `messages.${known + at}.role` },
      );
  const before = idsOf(parent);
  const conversation = conversationOf([...stored, ...appended], request);
  const suffix = codec.renderSuffix(conversation, { ids: before, messages: known });
  const { trimmed, ids } = suffix;
  if (trimmed > codec.maxTrim || trimmed > parent.outputIds.length)
    throw refusal(
      'SESSION_TOKENS_BROKEN',
      `token prefix mismatch: the template would replace ${trimmed} sampled ids, at most ${codec.maxTrim} may be`,
    );
  const kept = before.length - trimmed;
  const promptIds = new Int32Array(kept + ids.length);
  promptIds.set(before.subarray(0, kept));
  promptIds.set(ids, kept);
  const respelled = respelledIn(stored, request.messages, known);
  return { ...own, promptIds, kept, respelled };
}

/** Matchers may be anybody's. */
function isMatch(stored: Message, given: Message, matches: MessageMatcher): boolean {
  let answer: unknown;
  try {
    answer = matches(stored, given);
  } catch (cause) {
    if (isRolloutError(cause)) throw cause;
    throw refusal('SESSION_MATCHER_FAILED', 'the session message matcher raised an error', {
      cause,
    });
  }
  if (typeof answer === 'boolean') return answer;
  throw refusal(
    'SESSION_MATCHER_FAILED',
    `the session message matcher returned ${typeof answer}, not a boolean`,
  );
}
