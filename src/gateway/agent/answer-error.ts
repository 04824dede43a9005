import { errorBody, type GatewayError } from '../gateway-error.ts';
import type { AgentSide } from './agent-side.ts';

/** The whole answer, in the shape that OpenAI clients read. */
export function answerError(agent: AgentSide, error: GatewayError): void {
  const body = Buffer.from(errorBody(error));
  const further = Object.entries(error.headers ?? {}).flat();
  agent.head(error.status, [
    ...['content-type', 'application/json', 'content-length', String(body.length), ...further],
  ]);
  agent.end(body);
}
