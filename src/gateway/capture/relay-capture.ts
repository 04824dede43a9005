/** The capture of one relayed call: its body on the way up, with the fields that make the engine tell ids, and its answer on the way down, without what came of them. */
import type { EngineKind } from '../../engines/engine.ts';
import type { AnswerOrigin } from '../../engines/shared/answer-error.ts';
import { ChatReader } from '../../engines/shared/chat-reader.ts';
import { recordOf, type JsonRecord } from '../../engines/shared/json.ts';
import { refusedFields } from '../../engines/shared/refused-fields.ts';
import { pinnedBody } from '../pinned-body.ts';
import { askFor, type HiddenFields } from './asked-fields.ts';
import type { CallRecord, EndedCall, RouteCapture } from './call-capture.ts';
import { RelayAnswer } from './relay-answer.ts';

export interface RelayCaptureParts {
  readonly route: RouteCapture;
  /** Of the upstream; `chat` = nothing is known of it, and nothing is asked for. */
  readonly kind: EngineKind;
  readonly client: string | null;
  readonly at: AnswerOrigin;
}

type Asked = Readonly<Record<string, unknown>>;

export class RelayCapture {
  readonly #parts: RelayCaptureParts;
  readonly #record: CallRecord;
  #given: { readonly bytes: Buffer; readonly document: JsonRecord } | null = null;
  #asked: Asked = {};
  #hidden: HiddenFields | null = null;
  #answer: RelayAnswer | null = null;

  constructor(parts: RelayCaptureParts) {
    this.#parts = parts;
    this.#record = parts.route.begin();
  }

  /** The call is not sent before. Rejects with the signal's reason. */
  async room(signal: AbortSignal): Promise<void> {
    await this.#parts.route.room(signal);
  }

  /** What goes up in the place of `bytes`. */
  sent(bytes: Buffer): Buffer {
    const { kind, client, route } = this.#parts;
    const document = objectIn(bytes);
    const isStreaming = document?.['stream'] === true;
    if (document === null) {
      const text = bytes.toString('utf8');
      this.#record.sent({ dialect: 'chat', isStreaming, client, body: null, text });
      return bytes;
    }
    this.#given = { bytes, document };
    const { fields, hidden } = askFor({ kind, wanted: route.wanted }, document);
    this.#asked = fields;
    this.#hidden = hidden;
    const asked = this.#withAsked();
    this.#record.sent({
      dialect: 'chat',
      isStreaming,
      client,
      body: document,
      text: asked.toString(),
    });
    return asked;
  }

  /** The upstream refused the request: what goes up once more, when it was for a field of ours; null = the refusal is the client's. */
  sentAgain(status: number, refusal: string): Buffer | null {
    const { unknownFields } = this.#parts.route;
    const refused = refusedFields(status, refusal, this.#known());
    for (const name of refused) unknownFields.add(name);
    return refused.length === 0 ? null : this.#withAsked();
  }

  /** True = what the client gets has another length than what comes. */
  begins(contentType: string): boolean {
    const { at } = this.#parts;
    const document = this.#given?.document ?? {};
    const { stop } = document;
    this.#answer = new RelayAnswer({
      isStream: contentType.includes('event-stream'),
      reader: new ChatReader(
        {
          ...{ requestId: at.requestId ?? '', model: null, isStreaming: false, wantsTokens: true },
          ...{ input: { kind: 'messages', messages: [] }, sampling: {} },
          extraBody: stop === undefined || stop === null ? {} : { stop },
        },
        at,
      ),
      hidden: this.#hidden,
      onPart: (part) => this.#record.part(part),
    });
    return this.#hidden !== null;
  }

  /** What of it goes to the client. Throws where what it must not see could not be taken out. */
  push(chunk: Buffer): Buffer {
    return this.#answer?.push(chunk) ?? chunk;
  }

  /** What is left for the client. */
  end(): Buffer | null {
    return this.#answer?.end() ?? null;
  }

  ended(call: EndedCall): void {
    const { problem = null, id: answerId = null } = this.#answer ?? {};
    this.#record.ended({ ...call, problem: call.problem ?? problem, answerId });
  }

  #known(): Asked {
    const { unknownFields } = this.#parts.route;
    return Object.fromEntries(
      Object.entries(this.#asked).filter(([name]) => !unknownFields.has(name)),
    );
  }

  #withAsked(): Buffer {
    const { bytes, document } = this.#given ?? { bytes: Buffer.alloc(0), document: {} };
    const fields = this.#known();
    const names = Object.keys(fields);
    if (names.length === 0) return bytes;
    const hasMembers = Object.keys(document).length > 0;
    const isNew = names.every((name) => !Object.hasOwn(document, name));
    return isNew && hasMembers ? withLastMembers(bytes, fields) : pinnedBody(bytes, fields).bytes;
  }
}

/** The text of an object, which has members, with others behind them. */
function withLastMembers(bytes: Buffer, fields: Asked): Buffer {
  const end = bytes.lastIndexOf('}');
  const members = JSON.stringify(fields).slice(1, -1);
  return Buffer.concat([bytes.subarray(0, end), Buffer.from(`,${members}`), bytes.subarray(end)]);
}

function objectIn(bytes: Buffer): JsonRecord | null {
  try {
    return recordOf(JSON.parse(bytes.toString('utf8')));
  } catch {
    return null;
  }
}
