import { Agent, fetch as undiciFetch } from 'undici';

/** `fetch` for answers that take as long as a trial: no limit of its own, and connections that are kept alive. */
export interface PatientFetch {
  readonly fetch: typeof fetch;
  /** Idempotent. */
  close(): Promise<void>;
}

export function patientFetch(): PatientFetch {
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connections: null, pipelining: 1 });
  const patient = (input: unknown, init?: object): Promise<unknown> =>
    undiciFetch(input as Parameters<typeof undiciFetch>[0], { ...init, dispatcher: agent });
  return { fetch: patient as typeof fetch, close: () => agent.destroy() };
}
