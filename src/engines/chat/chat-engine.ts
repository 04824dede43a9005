/**
 * Any endpoint that speaks OpenAI's chat completions. It may return token ids when asked (vLLM, SGLang and LiteLLM do, each in its own place):
 * capabilities say what a caller may hope for, and a result says null where it did not come.
 */
import type {
  EngineCapabilities,
  EngineHealth,
  EngineOptions,
  GenerateRequest,
} from '../engine.ts';
import type { ModelCall } from '../model-call.ts';
import { ChatReader } from '../shared/chat-reader.ts';
import { chatBody, sglextFields } from '../shared/chat-request.ts';
import { DialectEngine } from '../shared/dialect-engine.ts';
import { EngineClient } from '../shared/engine-client.ts';
import { healthOr, modelListHealth } from '../shared/health.ts';

const capabilities: EngineCapabilities = {
  tokenInput: false,
  tokenIds: true,
  promptIds: true,
  logprobs: true,
  weightVersion: false,
  abortById: false,
  abortAll: false,
  pause: false,
  tokenize: false,
  load: false,
};

export class ChatEngine extends DialectEngine {
  override readonly kind = 'chat';
  override readonly capabilities = capabilities;

  constructor(options: EngineOptions) {
    super(new EngineClient(options, { abortNotice: null }));
  }

  override async generate(request: GenerateRequest, signal: AbortSignal): Promise<ModelCall> {
    const client = this.client;
    if (request.input.kind === 'tokens') throw client.unsupported('tokenInput');
    return await client.generate(
      request,
      {
        path: '/chat/completions',
        body: chatBody(request, request.input),
        ...(request.wantsTokens && { insteadInStreams: sglextFields }),
        reader: new ChatReader(request, client.http.origin(request.requestId)),
      },
      signal,
    );
  }

  override async health(signal: AbortSignal): Promise<EngineHealth> {
    const client = this.client;
    // The list of models is the one route besides the completions that nearly all hosts have; one without it still lives when it says so.
    return await healthOr(() => modelListHealth(client, '/models', signal), { client, signal });
  }
}
