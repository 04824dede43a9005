/**
 * vLLM. Its stable routes have no abort: it ends a request when the connection of the request closes, so that is what `abort` does, for the
 * calls of this client. It cannot end calls of others, therefore `abortAll` is not declared; nor is `pause`, whose routes exist in its
 * development mode only.
 */
import type {
  EngineCapabilities,
  EngineHealth,
  EngineLoad,
  EngineOptions,
  GenerateRequest,
} from '../engine.ts';
import type { ModelCall } from '../model-call.ts';
import { ChatReader } from '../shared/chat-reader.ts';
import { chatBody } from '../shared/chat-request.ts';
import { DialectEngine } from '../shared/dialect-engine.ts';
import { EngineClient } from '../shared/engine-client.ts';
import { healthOr, onlyModel, unhealthy } from '../shared/health.ts';
import { askTokens } from '../shared/tokenize.ts';
import { completionsBody, CompletionsReader } from './completions.ts';
import { loadOfMetrics } from './metrics.ts';

const capabilities: EngineCapabilities = {
  tokenInput: true,
  tokenIds: true,
  promptIds: true,
  logprobs: true,
  weightVersion: false,
  abortById: true,
  abortAll: false,
  pause: false,
  tokenize: true,
  load: true,
};

export class VllmEngine extends DialectEngine {
  override readonly kind = 'vllm';
  override readonly capabilities = capabilities;

  constructor(options: EngineOptions) {
    super(new EngineClient(options, { abortNotice: null }));
  }

  override async generate(request: GenerateRequest, signal: AbortSignal): Promise<ModelCall> {
    const client = this.client;
    const { input } = request;
    const at = client.http.origin(request.requestId);
    const generation =
      input.kind === 'tokens'
        ? {
            path: '/v1/completions',
            body: completionsBody(request, input.ids),
            reader: new CompletionsReader(request, at),
          }
        : {
            path: '/v1/chat/completions',
            body: chatBody(request, input),
            reader: new ChatReader(request, at),
          };
    return await client.generate(request, generation, signal);
  }

  override abort(requestId: string): Promise<void> {
    this.client.abortOwn(requestId);
    return Promise.resolve();
  }

  override async health(signal: AbortSignal): Promise<EngineHealth> {
    const client = this.client;
    return await healthOr(
      async () => {
        const { status } = await client.http.probe({ method: 'GET', path: '/health' }, signal);
        if (status !== 200) return unhealthy;
        const model = await onlyModel(client, '/v1/models', signal);
        return { isHealthy: true, model, weightVersion: null };
      },
      { client, signal },
    );
  }

  override async load(signal: AbortSignal): Promise<EngineLoad> {
    const { http } = this.client;
    const load = loadOfMetrics(await http.control({ method: 'GET', path: '/metrics' }, signal));
    if (load === null)
      throw this.client.error('ENGINE_RESPONSE_INVALID', 'the metrics are not those of vLLM');
    return load;
  }

  override async tokenize(text: string, signal: AbortSignal): Promise<readonly number[]> {
    return await askTokens(this.client, text, signal);
  }
}
