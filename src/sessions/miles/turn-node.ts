/**
 * One recorded turn: what it adds to the turns before it, never their copy. Ids of a path are put together when somebody asks for them; messages of the path are
 * shared by all turns behind them. A record of a turn says how its request spelled messages that the session holds otherwise.
 */
import type { ChatReply } from './chat-reply.ts';
import { requestBody, type ChatRequest, type Member } from './chat-request.ts';
import { equal, type Message } from './message-matcher.ts';

export interface TurnNode {
  /** In the order of commits, from 0. */
  readonly seq: number;
  readonly parent: TurnNode | null;
  /** Turns on the path, this one included. */
  readonly depth: number;
  /** New messages of the request, then the answer. */
  readonly messages: readonly Message[];
  /** Messages on the path, the answer included. */
  readonly messagesEnd: number;
  /** How many ids of the parent's path go on in this one. */
  readonly kept: number;
  /** Ids of the prompt behind those. */
  readonly suffixIds: Int32Array;
  readonly outputIds: Int32Array;
  readonly logprobs: Float64Array;
  /** Of the path: where the prompt ends, and where the output does. */
  readonly promptEnd: number;
  readonly end: number;
  readonly request: RecordedRequest;
  /** The first row of routed experts that its answer says; null = it was not asked to leave any out. */
  readonly replayStart: number | null;
  readonly reply: Omit<ChatReply, 'shown' | 'outputIds' | 'logprobs' | 'message'>;
  /** About what it takes of memory that the turns before it do not. */
  readonly bytes: number;
  /** Seconds since 1970. */
  readonly requestedS: number;
  readonly committedS: number;
}

export interface RecordedRequest extends Pick<
  ChatRequest,
  'tools' | 'toolsText' | 'templateVariables'
> {
  readonly members: readonly Member[];
  /** By their place: messages that the session holds in another spelling. */
  readonly respelled: ReadonlyMap<number, Message>;
}

/** A turn whose prompt is known and whose answer is not. */
export interface PreparedTurn {
  readonly parent: TurnNode | null;
  readonly request: ChatRequest;
  readonly promptIds: Int32Array;
  readonly kept: number;
  /** Messages of the parent's path. */
  readonly known: number;
  readonly respelled: ReadonlyMap<number, Message>;
  readonly requestedS: number;
  readonly replayStart: number | null;
}

export function turnNode(
  turn: PreparedTurn,
  reply: ChatReply,
  at: { readonly seq: number; readonly committedS: number },
): TurnNode {
  const { parent, promptIds, kept, known, requestedS, replayStart } = turn;
  const { outputIds, logprobs, message } = reply;
  const messages = [...turn.request.messages.slice(known), message];
  const suffixIds = promptIds.slice(kept);
  const request = recorded(turn, parent?.request ?? null);
  const { text, finishReason, responseId, weightVersion, cachedTokens, promptTokens, latencyS } =
    reply;
  return {
    ...{ ...at, parent, kept, requestedS, replayStart, outputIds, logprobs },
    depth: (parent?.depth ?? 0) + 1,
    ...{ messages, suffixIds, request },
    messagesEnd: turn.request.messages.length + 1,
    promptEnd: promptIds.length,
    end: promptIds.length + outputIds.length,
    bytes:
      suffixIds.byteLength +
      outputIds.byteLength +
      logprobs.byteLength +
      bytesOfText(
        text.length + JSON.stringify(messages).length + newText(request, parent?.request ?? null),
      ),
    reply: { text, finishReason, responseId, weightVersion, cachedTokens, promptTokens, latencyS },
  };
}

/** What most turns say as the turn before did is held once; nothing holds on to the body that it was cut out of. */
function recorded(
  { request, respelled }: PreparedTurn,
  before: RecordedRequest | null,
): RecordedRequest {
  const { templateVariables } = request;
  const known = new Map(before?.members.map((member) => [member, member]));
  const members = request.members.map((member) => known.get(member) ?? detached(member));
  const hasTools = before !== null && before.toolsText === request.toolsText;
  const { tools, toolsText } = hasTools ? before : request;
  return {
    ...{ tools, templateVariables, members, respelled },
    toolsText: toolsText === null || hasTools ? toolsText : detached(toolsText),
  };
}

const detached = (text: string): string => Buffer.from(text).toString();

/** Characters that a request holds and the one before it does not. */
function newText(request: RecordedRequest, before: RecordedRequest | null): number {
  const known = new Set(before?.members);
  const own = request.members.filter((member) => !known.has(member));
  const tools = request.tools === before?.tools ? 0 : (request.toolsText?.length ?? 0);
  const spelled = JSON.stringify([...request.respelled.values()]).length;
  return own.reduce((sum, { length }) => sum + length, 2 * tools + spelled);
}

/** Characters take two bytes at most, and what is parsed takes more than its text. */
const bytesOfText = (characters: number): number => 2 * characters;

/** From the first turn to this one. */
export function pathTo(node: TurnNode | null): readonly TurnNode[] {
  const path: TurnNode[] = [];
  for (let at = node; at !== null; at = at.parent) path.push(at);
  return path.reverse();
}

/** Ids of the path: all prompts and outputs, each as far as the turn behind it keeps it. */
export function idsOf(node: TurnNode | null): Int32Array {
  const ids = new Int32Array(node?.end ?? 0);
  for (const turn of pathTo(node)) {
    ids.set(turn.suffixIds, turn.kept);
    ids.set(turn.outputIds, turn.promptEnd);
  }
  return ids;
}

export function messagesOf(node: TurnNode | null): readonly Message[] {
  return pathTo(node).flatMap(({ messages }) => messages);
}

/** Which of the first `count` messages a request spells in another way than the session. */
export function respelledIn(
  stored: readonly Message[],
  given: readonly Message[],
  count: number,
): ReadonlyMap<number, Message> {
  const respelled = new Map<number, Message>();
  for (let at = 0; at < count; at += 1) {
    const [own, other] = [stored[at], given[at]];
    if (own !== undefined && other !== undefined && !equal(own, other)) respelled.set(at, other);
  }
  return respelled;
}

/** Records of a path as JSON, as they went to the engine and came from it. */
export function recordsOf(node: TurnNode | null): readonly string[] {
  const messages = messagesOf(node);
  const ids = idsOf(node);
  return pathTo(node).map((turn) => {
    const { members, respelled } = turn.request;
    const asked = messages
      .slice(0, turn.messagesEnd - 1)
      .map((message, at) => respelled.get(at) ?? message);
    // A turn keeps the whole prompt of the one before it: only ends of outputs are let go.
    const body = requestBody(members, JSON.stringify(asked), ids.subarray(0, turn.promptEnd));
    return `{"timestamp":${turn.committedS},"request_timestamp":${turn.requestedS},"method":"POST","path":"/v1/chat/completions","request":${body},"response":${turn.reply.text},"status_code":200}`;
  });
}
