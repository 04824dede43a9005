/** Which trials belong to which client: by instance id, else by the server that its heartbeats ask. A key goes with its last trial, and its failures with it. */
import type { Caller } from '../scheduler/rollout-service.ts';

export interface ClientIdentity {
  readonly key: string;
  /** `host:port`. */
  readonly heartbeatTarget: string;
  /** null = whoever answers there is the client. */
  readonly instanceId: string | null;
}

export interface Client<Run> extends ClientIdentity {
  readonly runs: ReadonlySet<Run>;
  /** Heartbeats in a row that failed. */
  failures: number;
}

interface HeldClient<Run> extends Client<Run> {
  readonly runs: Set<Run>;
}

/** `Run`: whatever stands for a trial. Callers do not see each other's; the operator sees all. */
export class Clients<Run> {
  readonly #clients = new Map<string, HeldClient<Run> & { readonly tenant: string | null }>();

  get all(): readonly Client<Run>[] {
    return [...this.#clients.values()];
  }

  /** False = the key is that of another client. */
  register(identity: ClientIdentity, run: Run, { tenant }: Caller): boolean {
    const at = placeOf(identity.key, tenant);
    const client = this.#clients.get(at);
    if (client === undefined) {
      this.#clients.set(at, { ...identity, tenant, runs: new Set([run]), failures: 0 });
      return true;
    }
    const isSame =
      client.heartbeatTarget === identity.heartbeatTarget &&
      client.instanceId === identity.instanceId;
    if (isSame) client.runs.add(run);
    return isSame;
  }

  /** What is not known is no mistake. */
  discard({ key }: ClientIdentity, run: Run, { tenant }: Caller): void {
    const at = placeOf(key, tenant);
    const client = this.#clients.get(at);
    client?.runs.delete(run);
    if (client?.runs.size === 0) this.#clients.delete(at);
  }

  /** Those of `caller`, for which `isMeant` holds; none of them is known afterwards. */
  take(caller: Caller, isMeant: (client: Client<Run>) => boolean): readonly Client<Run>[] {
    const taken = [...this.#clients].filter(
      ([, client]) => isVisible(client.tenant, caller) && isMeant(client),
    );
    for (const [at] of taken) this.#clients.delete(at);
    return taken.map(([, client]) => client);
  }

  visible(caller: Caller): readonly Client<Run>[] {
    return [...this.#clients.values()].filter(({ tenant }) => isVisible(tenant, caller));
  }
}

function isVisible(tenant: string | null, caller: Caller): boolean {
  return caller.tenant === null || caller.tenant === tenant;
}

function placeOf(key: string, tenant: string | null): string {
  return JSON.stringify([tenant, key]);
}
