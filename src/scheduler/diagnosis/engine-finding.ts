/**
 * What the model calls of a rollout tell. An engine is *slow* when an answer comes in drops, or has not begun while other requests are answered; it is
 * *silent* when an answer has stopped in its middle, or has not begun and nothing else is answered either; it *refuses* when the latest answer was no
 * success. An answer that is sent in one piece shows nothing until its end: only another request tells a busy engine from a dead one.
 */
import type { RouteActivity } from '../../wire/rollout/route-activity.ts';
import type { RolloutFacts } from '../diagnosis.ts';
import { after, durationText, moving, msSince, ordinaryWaitMs, type Finding } from './finding.ts';

/** A token of an event stream takes about this many bytes. */
const bytesPerToken = 250;
/** An answer that comes with less is slow: two tokens a second. */
const slowBytesPerSecond = 2 * bytesPerToken;
/** An engine that answers others has lost a call that it has not begun to answer after this. */
const lostCallMs = 120_000;
/** A pause of so many times the usual one is no pause any more. */
const pauseFactor = 4;

type Waiting = NonNullable<RouteActivity['waiting']>;

/** null = the calls hold nothing up. */
export function engineFinding(
  calls: RouteActivity | null,
  { upstream, now }: Pick<RolloutFacts, 'upstream' | 'now'>,
): Finding | null {
  if (calls === null) return null;
  const { waiting, refusal } = calls;
  if (waiting !== null) {
    const finding =
      waiting.bytes === 0
        ? unansweredFinding(waiting, calls, { upstream, now })
        : comingFinding(waiting, calls, now);
    // The next try of a call that was refused is no progress.
    return finding.kind === 'moving' && refusal !== null && waiting.bytes === 0
      ? refusalFinding(refusal, calls)
      : finding;
  }
  return refusal === null ? null : refusalFinding(refusal, calls);
}

function unansweredFinding(
  { since }: Waiting,
  calls: RouteActivity,
  { upstream, now }: Pick<RolloutFacts, 'upstream' | 'now'>,
): Finding {
  const ageMs = msSince(since, now);
  const isAlive = upstream !== null && upstream.status !== null;
  const isSlow = isAlive && ageMs < lostCallMs;
  const other =
    upstream === null
      ? 'nothing else was asked of it'
      : isAlive
        ? `it answers another request after ${Math.round(upstream.ms)} ms`
        : `it does not answer another request within ${durationText(upstream.ms)} either`;
  return after(
    ordinaryWaitMs,
    {
      kind: isSlow ? 'engine-slow' : 'engine-silent',
      owner: 'engine',
      waitingOn: 'the first byte of a model call',
      since,
      evidence: [`no byte of the answer for ${durationText(ageMs)}`, other, callsText(calls)],
      remedy: isSlow
        ? 'Look at the load of the inference server; let fewer rollouts run at once.'
        : 'Look whether the inference server works on anything: its load, its log, its health route.',
    },
    now,
  );
}

function comingFinding(waiting: Waiting, calls: RouteActivity, now: Date): Finding {
  const { since, bytes } = waiting;
  const lastByteAt = waiting.lastByteAt ?? since;
  const ageMs = msSince(since, now);
  const done = callsText(calls);
  const pauseMs = msSince(lastByteAt, now);
  const usualPauseMs =
    (lastByteAt.getTime() - since.getTime()) / Math.max(1, bytes / bytesPerToken);
  const came = `${bytes} bytes of the answer came in ${durationText(ageMs)}`;
  if (pauseMs >= ordinaryWaitMs && pauseMs > pauseFactor * usualPauseMs)
    return {
      kind: 'engine-silent',
      owner: 'engine',
      waitingOn: 'the rest of a model call that stopped in its middle',
      since: lastByteAt,
      evidence: [`${came}, the last ${durationText(pauseMs)} ago`, done],
      remedy: 'Look whether the inference server still works on it, and what lies between.',
    };
  const rate = bytes / (Math.max(1, ageMs) / 1000);
  const slow: Finding = {
    kind: 'engine-slow',
    owner: 'engine',
    waitingOn: 'a model call whose answer comes slowly',
    since,
    evidence: [
      `${came}: ${Math.round(rate)} bytes a second, about ${(rate / bytesPerToken).toFixed(1)} tokens`,
      `the last byte came ${durationText(pauseMs)} ago`,
      done,
    ],
    remedy: 'Look at the load of the inference server; let fewer rollouts run at once.',
  };
  if (rate < slowBytesPerSecond) return after(ordinaryWaitMs, slow, now);
  return moving({ ...slow, waitingOn: 'a model call whose answer is coming' });
}

function callsText({ callsRunning, callsDone }: RouteActivity): string {
  return `model calls: ${callsRunning} running, ${callsDone} done before`;
}

function refusalFinding(
  refusal: NonNullable<RouteActivity['refusal']>,
  calls: RouteActivity,
): Finding {
  const { status, message, at, count } = refusal;
  const isOurs = status === 401 || status === 403 || status === 404;
  return {
    kind: 'upstream-refusing',
    owner: isOurs ? 'controller' : 'engine',
    waitingOn: 'a model call that is not refused',
    since: at,
    evidence: [
      `${count} refusals in a row, the last: ${status === null ? 'no connection' : `HTTP ${status}`}${message === '' ? '' : `, ${message}`}`,
      callsText(calls),
    ],
    remedy: isOurs
      ? 'Correct the address or the key that the controller sends for the model.'
      : status === null
        ? 'Start the inference server, or correct the address that the controller sends.'
        : 'Look at the inference server: it refuses by load or fails.',
  };
}
