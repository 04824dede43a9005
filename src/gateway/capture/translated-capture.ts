/** The capture of one translated call: the chat request that was made of it, and the parts of its answer before they become a dialect's. */
import type { EngineKind, GenerateRequest } from '../../engines/engine.ts';
import type { ModelPart } from '../../engines/model-call.ts';
import { sglextFields } from '../../engines/shared/chat-request.ts';
import type { JsonRecord } from '../../engines/shared/json.ts';
import { askedFields } from './asked-fields.ts';
import type { CallDialect, CallRecord, EndedCall, RouteCapture } from './call-capture.ts';

export interface TranslatedCaptureParts {
  readonly route: RouteCapture;
  /** Of the upstream; `chat` = nothing is known of it, or it is asked for ids already: nothing is asked for. */
  readonly kind: EngineKind;
  readonly client: string | null;
  readonly dialect: CallDialect;
}

export class TranslatedCapture {
  readonly #parts: TranslatedCaptureParts;
  readonly #record: CallRecord;
  #answerId: string | null = null;

  constructor(parts: TranslatedCaptureParts) {
    this.#parts = parts;
    this.#record = parts.route.begin();
  }

  /** The call is not sent before. Rejects with the signal's reason. */
  async room(signal: AbortSignal): Promise<void> {
    await this.#parts.route.room(signal);
  }

  /** The request with what makes the engine tell ids; it is captured when it goes up. Nothing of them is in the items of an answer. */
  asking(request: GenerateRequest): GenerateRequest {
    const { kind, client, dialect, route } = this.#parts;
    const { wanted } = route;
    const { isStreaming, requestId } = request;
    const isUnasked = kind === 'chat' && wanted?.ids !== true;
    this.#answerId = requestId;
    return {
      ...request,
      wantsTokens: true,
      extraBody: {
        ...(isUnasked && notAsked),
        ...askedFields({ kind, isStreaming, wanted }),
        ...request.extraBody,
      },
      onSend: (body) => this.#record.sent({ dialect, isStreaming, client, body }),
    };
  }

  /** A call that counts the tokens of a prompt. */
  counting(body: JsonRecord): void {
    const { client, dialect } = this.#parts;
    const purpose = 'count-tokens';
    this.#record.sent({ dialect, isStreaming: false, client, body, purpose });
  }

  part(part: ModelPart): void {
    this.#record.part(part);
  }

  ended(call: EndedCall): void {
    this.#record.ended({ ...call, answerId: this.#answerId });
  }
}

/** What the client of an engine would ask any host for that it reads ids of. */
const notAsked = Object.fromEntries(
  ['logprobs', 'return_token_ids', ...Object.keys(sglextFields)].map((name) => [name, undefined]),
);
