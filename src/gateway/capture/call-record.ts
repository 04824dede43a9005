/** One call while it runs: its request is spilled when it goes up, its answer when it has ended. */
import type { Clock } from '../../core/clock.ts';
import type { ModelPart } from '../../engines/model-call.ts';
import type { CallRecord, EndedCall, SentRequest } from './call-capture.ts';
import { answerStep, requestStep, sampledText } from './call-steps.ts';
import { AnswerSoFar } from './captured-answer.ts';
import type { EarlierCalls, SeenCall } from './earlier-calls.ts';
import type { SpilledStep } from './route-capture.ts';
import { purposeOf } from './side-calls.ts';

/** Of a number in a list, with its comma. */
const numberSize = 8;
const logprobSize = 20;

/** What a record needs of the capture that it belongs to. */
export interface RecordTarget {
  readonly earlier: EarlierCalls;
  nextCall(): number;
  callEnded(): void;
  append(spilled: SpilledStep): void;
}

export class FileCallRecord implements CallRecord {
  readonly #target: RecordTarget;
  readonly #clock: Clock;
  readonly #answer = new AnswerSoFar();
  #sent: { readonly call: number; readonly seen: SeenCall | null } | null = null;
  #hasAnswer = false;
  #isOver = false;

  constructor(target: RecordTarget, clock: Clock) {
    this.#target = target;
    this.#clock = clock;
  }

  /** An upstream that does not know a field of ours is asked again without it: what was sent first stands. */
  sent(request: SentRequest): void {
    if (this.#sent !== null || this.#isOver) return;
    const call = this.#target.nextCall();
    const purpose = request.purpose ?? purposeOf(request.body, request.client);
    const seen =
      purpose === 'count-tokens' || request.body === null
        ? null
        : this.#target.earlier.see(call, request.body, request.isStreaming);
    this.#sent = { call, seen };
    const repeats = seen?.repeats ?? null;
    const step = requestStep({ call, at: this.#clock.now(), purpose, repeats, request });
    const text = step.extra?.['request'];
    this.#target.append({ step, sampledText: '', size: String(text).length });
  }

  part(part: ModelPart): void {
    this.#hasAnswer = true;
    this.#answer.push(part);
  }

  ended(given: EndedCall): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#sent === null) return;
    const { call, seen } = this.#sent;
    // Whatever else happened: the engine had said all.
    const ended: EndedCall = this.#answer.isComplete ? { ...given, end: 'complete' } : given;
    const answer = this.#hasAnswer ? this.#answer.answer() : null;
    seen?.ended({
      isUsed: ended.end === 'complete' && ended.isDelivered,
      hasAnswer: answer !== null,
    });
    const step = answerStep({ call, at: this.#clock.now() }, answer, ended);
    const text = answer === null ? '' : sampledText(answer);
    const numbers =
      ((answer?.promptIds?.length ?? 0) + (answer?.outputIds?.length ?? 0)) * numberSize +
      (answer?.logprobs?.length ?? 0) * logprobSize;
    this.#target.callEnded();
    this.#target.append({ step, sampledText: text, size: text.length + numbers });
  }
}
