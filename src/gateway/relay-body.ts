/** The body of a relayed request on its way up: as it comes, counted against the limit, or whole where it has to be looked at. */
import type { AgentSide } from './agent/agent-side.ts';
import { RequestProblem } from './dialects/dialect.ts';
import type { BodySource } from './upstream/upstream-request.ts';
import { BodyTooLarge } from './whole-body.ts';

/** As it comes, no faster than it is taken. Beyond the limit nothing more of it goes on. */
export function passedBody(
  agent: AgentSide,
  { limitBytes, onTooLarge }: { readonly limitBytes: number; readonly onTooLarge: () => void },
): BodySource | Buffer {
  if (agent.arrived !== null) return agent.arrived;
  let size = 0;
  return {
    length: agent.length,
    start: (taker) =>
      agent.start({
        piece: (bytes) => {
          size += bytes.length;
          if (size <= limitBytes) return taker.piece(bytes);
          onTooLarge();
          return true;
        },
        end: () => {
          if (size <= limitBytes) taker.end();
        },
      }),
    resume: () => agent.resume(),
  };
}

export interface BodyReading {
  whole(body: Buffer): void;
  failed(problem: RequestProblem | BodyTooLarge): void;
}

/** Whole. One of the two is called once, unless the agent leaves before. */
export function collectBody(agent: AgentSide, limitBytes: number, reading: BodyReading): void {
  if (agent.contentEncoding !== null) {
    const message = `a body in the encoding ${agent.contentEncoding} is not read`;
    reading.failed(new RequestProblem(message, { field: 'content-encoding' }));
    return;
  }
  if (agent.arrived !== null) {
    reading.whole(agent.arrived);
    return;
  }
  const pieces: Buffer[] = [];
  let size = 0;
  let isOver = false;
  agent.start({
    piece: (bytes) => {
      size += bytes.length;
      if (isOver) return true;
      pieces.push(bytes);
      if (size > limitBytes) {
        isOver = true;
        pieces.length = 0;
        reading.failed(new BodyTooLarge());
      }
      return true;
    },
    end: () => {
      if (!isOver) reading.whole(Buffer.concat(pieces));
    },
  });
}
