import type {
  Engine,
  EngineCapabilities,
  EngineHealth,
  EngineKind,
  EngineLoad,
  GenerateRequest,
  PauseMode,
} from '../engine.ts';
import type { ModelCall } from '../model-call.ts';
import type { EngineClient } from './engine-client.ts';

/** What the dialects have in common: one client, and a refusal in place of each method that a dialect does not have. */
export abstract class DialectEngine implements Engine {
  abstract readonly kind: EngineKind;
  abstract readonly capabilities: EngineCapabilities;
  protected readonly client: EngineClient;

  constructor(client: EngineClient) {
    this.client = client;
  }

  get url(): string {
    return this.client.http.endpoint.url;
  }

  abstract generate(request: GenerateRequest, signal: AbortSignal): Promise<ModelCall>;
  abstract health(signal: AbortSignal): Promise<EngineHealth>;

  abort(requestId: string, signal: AbortSignal): Promise<void>;
  abort(): Promise<void> {
    return this.client.refuse('abortById');
  }

  abortAll(signal: AbortSignal): Promise<void>;
  abortAll(): Promise<void> {
    return this.client.refuse('abortAll');
  }

  pause(mode: PauseMode, signal: AbortSignal): Promise<void>;
  pause(): Promise<void> {
    return this.client.refuse('pause');
  }

  continue(signal: AbortSignal): Promise<void>;
  continue(): Promise<void> {
    return this.client.refuse('pause');
  }

  load(signal: AbortSignal): Promise<EngineLoad>;
  load(): Promise<EngineLoad> {
    return this.client.refuse('load');
  }

  tokenize(text: string, signal: AbortSignal): Promise<readonly number[]>;
  tokenize(): Promise<readonly number[]> {
    return this.client.refuse('tokenize');
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  async destroy(reason: Error): Promise<void> {
    await this.client.destroy(reason);
  }
}
