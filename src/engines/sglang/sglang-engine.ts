/** SGLang: token ids go through `/generate`, messages through its chat completions; both take the request's id for `/abort_request`. */
import type {
  EngineCapabilities,
  EngineHealth,
  EngineLoad,
  EngineOptions,
  GenerateRequest,
  PauseMode,
} from '../engine.ts';
import type { ModelCall } from '../model-call.ts';
import { ChatReader } from '../shared/chat-reader.ts';
import { chatBody } from '../shared/chat-request.ts';
import { DialectEngine } from '../shared/dialect-engine.ts';
import { EngineClient } from '../shared/engine-client.ts';
import { healthOr, unhealthy } from '../shared/health.ts';
import { recordOf, textOf, type JsonRecord } from '../shared/json.ts';
import { askTokens } from '../shared/tokenize.ts';
import { GenerateReader } from './generate-reader.ts';
import { loadOfGetLoad, loadOfLoads } from './load.ts';
import { chatFields, generateBody } from './sampling.ts';

const capabilities: EngineCapabilities = {
  tokenInput: true,
  tokenIds: true,
  promptIds: true,
  logprobs: true,
  weightVersion: true,
  abortById: true,
  abortAll: true,
  pause: true,
  tokenize: true,
  load: true,
};

export class SglangEngine extends DialectEngine {
  override readonly kind = 'sglang';
  override readonly capabilities = capabilities;

  constructor(options: EngineOptions) {
    super(
      new EngineClient(options, {
        abortNotice: (requestId) => ({
          method: 'POST',
          path: '/abort_request',
          body: { rid: requestId },
        }),
      }),
    );
  }

  override async generate(request: GenerateRequest, signal: AbortSignal): Promise<ModelCall> {
    const { input } = request;
    const at = this.client.http.origin(request.requestId);
    const generation =
      input.kind === 'tokens'
        ? {
            path: '/generate',
            body: generateBody(request, input.ids),
            reader: new GenerateReader(request, { at, promptIds: input.ids }),
          }
        : {
            path: '/v1/chat/completions',
            body: chatBody(request, input, chatFields(request)),
            reader: new ChatReader(request, at),
          };
    return await this.client.generate(request, generation, signal);
  }

  override async abort(requestId: string, signal: AbortSignal): Promise<void> {
    await this.#post('/abort_request', { rid: requestId }, signal);
  }

  override async abortAll(signal: AbortSignal): Promise<void> {
    await this.#post('/abort_request', { abort_all: true }, signal);
  }

  override async pause(mode: PauseMode, signal: AbortSignal): Promise<void> {
    await this.#post('/pause_generation', { mode }, signal);
  }

  override async continue(signal: AbortSignal): Promise<void> {
    await this.#post('/continue_generation', {}, signal);
  }

  override async health(signal: AbortSignal): Promise<EngineHealth> {
    const client = this.client;
    return await healthOr(
      async () => {
        const { status } = await client.http.probe({ method: 'GET', path: '/health' }, signal);
        if (status !== 200) return unhealthy;
        const told =
          (await this.#ask('/model_info', signal)) ??
          (await this.#ask('/get_model_info', signal)) ??
          {};
        const version = told['weight_version'] ?? (await this.#oldVersion(signal));
        return {
          isHealthy: true,
          model: textOf(told['model_path']),
          weightVersion: textOf(version),
        };
      },
      { client, signal },
    );
  }

  override async load(signal: AbortSignal): Promise<EngineLoad> {
    const { http } = this.client;
    const path = '/v1/loads?include=core';
    const present = await http.probe({ method: 'GET', path }, signal);
    const load =
      present.status === 404
        ? loadOfGetLoad(await http.controlJson({ method: 'GET', path: '/get_load' }, signal))
        : loadOfLoads(http.accepted(present));
    if (load !== null) return load;
    throw this.client.error('ENGINE_RESPONSE_INVALID', 'the load is not told as SGLang tells it');
  }

  override async tokenize(text: string, signal: AbortSignal): Promise<readonly number[]> {
    return await askTokens(this.client, text, signal);
  }

  async #post(path: string, body: JsonRecord, signal: AbortSignal): Promise<void> {
    this.client.refuseWhenOver();
    await this.client.http.control({ method: 'POST', path, body }, signal);
  }

  /** null = the route is missing. */
  async #ask(path: string, signal: AbortSignal): Promise<JsonRecord | null> {
    const { http } = this.client;
    const answer = await http.probe({ method: 'GET', path }, signal);
    return answer.status === 404 ? null : recordOf(http.accepted(answer));
  }

  async #oldVersion(signal: AbortSignal): Promise<unknown> {
    return (await this.#ask('/get_weight_version', signal))?.['weight_version'];
  }
}
