/**
 * The engine port: an inference server as its clients see it. One adapter per dialect (`sglang/`, `vllm/`, `chat/`), one conformance suite
 * (`tests/conformance/engine-suite.ts`) that all of them pass. What a dialect cannot do is a capability that it does not declare; asking for it
 * anyway rejects with ENGINE_UNSUPPORTED and names the capability.
 *
 * Failures are typed where they are born: ENGINE_UNAVAILABLE (no connection, 5xx), ENGINE_OVERLOADED (429, 503), ENGINE_UNAUTHORIZED,
 * BUDGET_EXHAUSTED (the gateway's own refusal), ENGINE_REQUEST_INVALID (4xx), CONTEXT_OVERFLOW (never a retry), ENGINE_STREAM_BROKEN (the answer
 * ended early), ENGINE_RESPONSE_INVALID (bytes that are not the dialect), ENGINE_STALLED (silence past the caller's limit). A fired signal rejects with its reason.
 */
import type { LookupFunction } from 'node:net';
import type { ChatMessage, ToolDefinition } from './chat-message.ts';
import type { ModelCall } from './model-call.ts';

export type EngineKind = 'sglang' | 'vllm' | 'chat';

export interface EngineCapabilities {
  /** Generates from token ids. */
  readonly tokenInput: boolean;
  /** Says which ids it sampled. */
  readonly tokenIds: boolean;
  /** Says which ids it was given or made of the messages. */
  readonly promptIds: boolean;
  readonly logprobs: boolean;
  /** Names the weights that sampled. */
  readonly weightVersion: boolean;
  readonly abortById: boolean;
  readonly abortAll: boolean;
  readonly pause: boolean;
  readonly tokenize: boolean;
  readonly load: boolean;
}

/** Absent fields are not sent: the engine's own default holds. */
export interface SamplingParams {
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
  readonly stop?: readonly string[];
  readonly stopTokenIds?: readonly number[];
  readonly seed?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
}

export type GenerateInput =
  | { readonly kind: 'tokens'; readonly ids: readonly number[] }
  | {
      readonly kind: 'messages';
      readonly messages: readonly ChatMessage[];
      readonly tools?: readonly ToolDefinition[];
      /** The tools as a client spelled them, for whoever renders them: a parse has lost which whole numbers were fractions. */
      readonly toolsText?: string;
    };

export interface GenerateRequest {
  /** Chosen by the caller, unique; what `abort` is called with. */
  readonly requestId: string;
  /** null = the engine's only model. */
  readonly model: string | null;
  readonly input: GenerateInput;
  readonly sampling: SamplingParams;
  /** Text arrives as it is sampled; without it everything arrives in one part. */
  readonly isStreaming: boolean;
  /** Prompt ids, sampled ids and their log-probabilities; what the engine does not say is null in the result, never made up. */
  readonly wantsTokens: boolean;
  /** Further fields of the request body, as the engine spells them; they win over ours. */
  readonly extraBody?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Hears of the body right before it goes out: again, when an endpoint that does not know a field of ours is asked without it. An observer: it must not throw. */
  readonly onSend?: (body: Readonly<Record<string, unknown>>) => void;
}

export interface EngineLoad {
  readonly runningRequests: number;
  readonly waitingRequests: number;
  /** Share of the KV cache in use, 0 to 1; null = unknown. */
  readonly kvUse: number | null;
}

export interface EngineHealth {
  readonly isHealthy: boolean;
  readonly model: string | null;
  readonly weightVersion: string | null;
}

/** `abort` ends running requests, `retract` queues them again, `in_place` freezes them with their KV. */
export type PauseMode = 'abort' | 'retract' | 'in_place';

/** Everything takes a signal; control calls never wait for a connection that data calls hold. */
export interface Engine {
  readonly kind: EngineKind;
  /** Without user, password and query: fit for logs. */
  readonly url: string;
  readonly capabilities: EngineCapabilities;

  /**
   * Resolves when the engine has begun to answer. When `signal` fires, now or while parts are read, the connection is closed, the engine is told
   * to abort the request where it can be, and the reason is thrown.
   */
  generate(request: GenerateRequest, signal: AbortSignal): Promise<ModelCall>;
  /** Ends one request. Idempotent; an unknown id is no error. */
  abort(requestId: string, signal: AbortSignal): Promise<void>;
  abortAll(signal: AbortSignal): Promise<void>;
  pause(mode: PauseMode, signal: AbortSignal): Promise<void>;
  /** Takes up generation after `pause`. */
  continue(signal: AbortSignal): Promise<void>;
  /** Never throws for an engine that is down: it is unhealthy. */
  health(signal: AbortSignal): Promise<EngineHealth>;
  load(signal: AbortSignal): Promise<EngineLoad>;
  /** Ids of a plain text, without special tokens added. */
  tokenize(text: string, signal: AbortSignal): Promise<readonly number[]>;
  /** Waits for running calls, then frees the connections. Idempotent. */
  close(): Promise<void>;
  /** Fails running calls with `reason` at once. Idempotent. */
  destroy(reason: Error): Promise<void>;
}

export interface EngineOptions {
  readonly kind: EngineKind;
  /** Opaque: path, percent-encoding and query are kept byte for byte. For chat, what `/chat/completions` is appended to. */
  readonly baseUrl: string;
  /** null = no authorisation header. */
  readonly apiKey: string | null;
  /**
   * Silence for longer than this is ENGINE_STALLED: in a stream from its sending on, else once the headers came (sampling ends before them). null =
   * hour-long silence is legal.
   */
  readonly stallMs?: number | null;
  /** How names become addresses; default: the system's. */
  readonly lookup?: LookupFunction;
}

/** Opens a client; nothing is connected before the first call. CONFIG_INVALID for an address that is empty or not http(s). */
export type EngineOpener = (options: EngineOptions) => Promise<Engine>;
