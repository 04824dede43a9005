/**
 * One call on its way: the request goes up and the answer comes down as bytes, each side no faster than the other takes them. It ends once, when
 * upstream is done with it and the agent has its answer or is gone; whichever of agent, upstream and abort ends first ends the others.
 */
import { messageOf } from '../core/errors.ts';
import type { SamplingPins } from '../wire/rollout/route-rules.ts';
import type { AgentListener, AgentSide } from './agent/agent-side.ts';
import { answerError } from './agent/answer-error.ts';
import type { CallParts } from './call-parts.ts';
import { CallProgress } from './call-progress.ts';
import type { CallEnd } from './capture/call-capture.ts';
import type { RelayCapture } from './capture/relay-capture.ts';
import { RequestProblem } from './dialects/dialect.ts';
import { bodyTooLarge, codeOf, noAnswer, ownDefect, type GatewayError } from './gateway-error.ts';
import { pinnedBody } from './pinned-body.ts';
import { collectBody, passedBody } from './relay-body.ts';
import { answerHeaders } from './relay-headers.ts';
import { RelayedRefusal } from './relayed-refusal.ts';
import type { RunningCall } from './running-calls.ts';
import { SampledTokens } from './sampled-tokens.ts';
import { SecretFilter } from './secret-filter.ts';
import type { AnswerHead } from './upstream/answer-head.ts';
import type { UpstreamClient } from './upstream/upstream-client.ts';
import type { BodySource, UpstreamExchange, UpstreamSink } from './upstream/upstream-request.ts';

export interface RelayCallParts extends CallParts {
  /** `/chat/completions`, `/models`. */
  readonly suffix: string;
  /** Sampling parameters that take the place of the client's; null = its body is not looked at. */
  readonly pins: SamplingPins | null;
  /** null = nothing of it is kept. */
  readonly capture: RelayCapture | null;
  readonly agent: AgentSide;
  readonly upstream: UpstreamClient;
}

/** Why the capture of a call ended before the engine's end; the first reason holds. */
interface Early {
  end: CallEnd | null;
  problem: string | null;
}

export class RelayCall implements UpstreamSink, AgentListener, RunningCall {
  readonly progress: CallProgress;
  readonly #parts: RelayCallParts;
  readonly #filter: SecretFilter;
  readonly #early: Early = { end: null, problem: null };
  /** Ends the wait for room in the capture. */
  #waiting: AbortController | null = null;
  #exchange: UpstreamExchange | null = null;
  #status: number | null = null;
  /** null = the answer is passed through. */
  #refusal: RelayedRefusal | null = null;
  /** null = nobody counts them. */
  #sampled: SampledTokens | null = null;
  /** Nothing more goes up, and nothing that comes is heard. */
  #isEnded = false;
  #isUpstreamDone = false;
  #isAgentDone = false;
  #isOver = false;

  constructor(parts: RelayCallParts) {
    this.#parts = parts;
    this.#filter = new SecretFilter(parts.route.secretBytes);
    this.progress = new CallProgress(parts.clock);
    parts.agent.listen(this);
  }

  get gone(): Promise<void> {
    return this.progress.gone;
  }

  send(): void {
    const { route, agent, pins, capture, bodyLimitBytes: limitBytes } = this.#parts;
    route.begin(this.progress);
    const onTooLarge = (): void => this.#refuse(bodyTooLarge(limitBytes));
    if (agent.method === 'GET') this.#ask(null);
    else if (pins === null && capture === null)
      this.#ask(passedBody(agent, { limitBytes, onTooLarge }));
    else
      collectBody(agent, limitBytes, {
        whole: (body) => void this.#sendWhole(body),
        failed: (problem) => {
          if (problem instanceof RequestProblem) this.#refuse(invalidRequest(problem.message));
          else onTooLarge();
        },
      });
  }

  /** Ends it on both sides; the agent hears `answer` where it has heard nothing yet. */
  end(_reason: Error, answer: GatewayError): void {
    if (this.#isEnded || this.#isOver) return;
    const { agent } = this.#parts;
    this.#endsEarly('aborted');
    if (agent.sentStatus === null) this.#refuse(answer);
    else {
      this.#endUpstream();
      agent.destroy();
    }
  }

  head(head: AnswerHead): void {
    const { route, agent, capture, share } = this.#parts;
    const { secrets } = route;
    this.#status = head.status;
    if (head.status >= 300) {
      const headers = answerHeaders(head.headers, { secrets, hasOtherLength: true });
      this.#refusal = new RelayedRefusal(head, headers);
      return;
    }
    share.answered();
    const hasOtherLength = capture?.begins(head.contentType ?? '') === true;
    if (hasOtherLength && head.contentEncoding !== null) {
      // What is taken out of it could not be taken out of a compressed answer, which nobody asked for.
      this.#endsEarly('refused', compressed.message);
      this.#refuse(compressed);
      return;
    }
    if (route.budget.countsTokens)
      this.#sampled = new SampledTokens({
        isStream: head.contentType?.includes('event-stream') === true,
      });
    agent.head(head.status, answerHeaders(head.headers, { secrets, hasOtherLength }));
  }

  piece(bytes: Buffer): void {
    this.progress.came(bytes.length);
    this.#sampled?.push(bytes);
    const refusal = this.#refusal;
    if (refusal === null) {
      this.#pass(bytes);
      return;
    }
    refusal.push(bytes);
    if (!refusal.isLongEnough) return;
    this.#answerRefusal(refusal);
    this.#endUpstream();
  }

  ended(): void {
    this.#isUpstreamDone = true;
    const { agent, onRefusal } = this.#parts;
    const refusal = this.#refusal;
    try {
      if (refusal === null) this.#finish();
      else if (!this.#isSentAgain(refusal)) this.#answerRefusal(refusal);
    } catch (error) {
      onRefusal(this.#status, messageOf(error));
      this.#breakOff(error);
    }
    // An upstream may answer before it has read all.
    agent.discard();
    this.#settle();
  }

  failed(error: Error): void {
    this.#isUpstreamDone = true;
    this.#isEnded = true;
    const { agent, onRefusal } = this.#parts;
    const code = codeOf(error);
    const hasBegun = agent.sentStatus !== null;
    const problem = `${hasBegun ? 'the answer broke off' : 'no answer'} (${code})`;
    this.#endsEarly(hasBegun ? 'cut' : 'refused', problem);
    onRefusal(null, problem);
    // An answer that breaks off must not look like one that ended.
    if (hasBegun) agent.destroy();
    else answerError(agent, unreachable(code));
    agent.discard();
    this.#settle();
  }

  agentDrained(): void {
    this.#exchange?.resume();
  }

  agentDone(): void {
    if (this.#isAgentDone) return;
    this.#isAgentDone = true;
    if (!this.#isUpstreamDone) {
      this.#endsEarly('left');
      this.#endUpstream();
    }
    this.#settle();
  }

  async #sendWhole(given: Buffer): Promise<void> {
    const { capture } = this.#parts;
    try {
      if (this.#isEnded || this.#isOver) return;
      const pinned = this.#pinned(given);
      if (capture === null) {
        this.#ask(pinned);
        return;
      }
      this.#waiting = new AbortController();
      await capture.room(this.#waiting.signal);
      this.#ask(capture.sent(pinned));
    } catch (error) {
      if (error instanceof RequestProblem) this.#refuse(invalidRequest(error.message));
      else this.#refuse(ownDefect);
    }
  }

  #pinned(given: Buffer): Buffer {
    const { pins, onNotes } = this.#parts;
    if (pins === null) return given;
    const { bytes, replaced } = pinnedBody(given, pins);
    if (replaced.length > 0)
      onNotes(replaced.map((field) => `${field} is pinned for this rollout`));
    return bytes;
  }

  #ask(body: Buffer | BodySource | null): void {
    if (this.#isEnded || this.#isOver) return;
    const { route, agent, suffix, upstream } = this.#parts;
    const { endpoint, authorization } = route;
    this.#exchange = upstream.send(
      {
        ...{ origin: endpoint.origin, path: endpoint.pathTo(suffix), method: agent.method, body },
        headers: agent.said.passed(authorization),
      },
      this,
    );
  }

  /** What the agent may see of a piece goes on; a pause that it brings ends with `agentDrained`. */
  #pass(bytes: Buffer): void {
    const { capture, agent } = this.#parts;
    let shown: Buffer;
    try {
      shown = this.#filter.push(capture?.push(bytes) ?? bytes);
    } catch (error) {
      this.#breakOff(error);
      return;
    }
    if (shown.length > 0 && !agent.write(shown)) this.#exchange?.pause();
  }

  #finish(): void {
    const { route, agent, capture } = this.#parts;
    route.succeeded();
    const last = capture?.end() ?? null;
    const shown = last === null ? null : this.#filter.push(last);
    const held = this.#filter.end();
    agent.end(shown === null ? held : Buffer.concat([shown, held]));
  }

  /** What came can be shown to nobody: an answer that has begun must not look like one that ended. */
  #breakOff(error: unknown): void {
    const { agent } = this.#parts;
    this.#endsEarly('cut', messageOf(error));
    if (agent.sentStatus === null) answerError(agent, ownDefect);
    else agent.destroy();
    this.#endUpstream();
  }

  /** The upstream does not know a field that the agent did not send: it is asked without it. */
  #isSentAgain(refusal: RelayedRefusal): boolean {
    const body = this.#parts.capture?.sentAgain(refusal.status, refusal.text) ?? null;
    if (body === null) return false;
    this.#refusal = null;
    this.#isUpstreamDone = false;
    this.progress.startsAgain();
    this.#ask(body);
    return true;
  }

  #answerRefusal(refusal: RelayedRefusal): void {
    const { route, agent, onRefusal } = this.#parts;
    const { status } = refusal;
    if (refusal.isRedirection) {
      const message = `the model's address answers with the redirection ${status}`;
      this.#endsEarly('refused', message);
      onRefusal(status, message);
      answerError(agent, { status: 502, code: 'upstream_refused', message });
      return;
    }
    const { headers, body, message } = refusal.answer({
      ...{ secrets: route.secretBytes, withoutSecrets: (text) => route.withoutSecrets(text) },
    });
    this.#endsEarly('refused', message);
    onRefusal(status, message);
    agent.head(status, headers);
    agent.end(body);
  }

  #refuse(answer: GatewayError): void {
    if (this.#isEnded || this.#parts.agent.sentStatus !== null) return;
    answerError(this.#parts.agent, answer);
    this.#endUpstream();
  }

  /** The first reason holds. */
  #endsEarly(end: CallEnd, problem: string | null = null): void {
    this.#early.end ??= end;
    this.#early.problem ??= problem;
  }

  #endUpstream(): void {
    this.#isEnded = true;
    this.#isUpstreamDone = true;
    this.#exchange?.abort();
    this.#waiting?.abort(new Error('the call has ended'));
    this.#parts.agent.discard();
    this.#settle();
  }

  #settle(): void {
    if (this.#isOver || !this.#isUpstreamDone || !this.#isAgentDone) return;
    this.#isOver = true;
    const { route, agent, share, capture, onEnd } = this.#parts;
    const { progress } = this;
    share.ended(this.#sampled?.count ?? 0, this.#sampled?.promptCount ?? 0);
    capture?.ended({
      ...{ end: this.#early.end ?? 'cut', status: this.#status, problem: this.#early.problem },
      isDelivered: agent.isDelivered,
      ...{ firstByteMs: progress.firstByteMs, durationMs: progress.durationMs },
    });
    route.end(progress);
    progress.over();
    onEnd(progress.ended(route.rolloutId, agent.isDelivered ? agent.sentStatus : null));
  }
}

const compressed: GatewayError = {
  ...{ status: 502, code: 'upstream_refused' },
  message: "the model's address compresses its answer, although nobody allowed it to",
};

function invalidRequest(message: string): GatewayError {
  return { status: 400, code: 'invalid_request', message };
}

function unreachable(code: string): GatewayError {
  return { status: 502, code: 'upstream_unreachable', message: noAnswer(code) };
}
