/**
 * What the head of a request says, but for the length of its body. One for all requests of a connection that say the same, as an agent's do: what was made of it
 * once holds for each of them.
 */
import { callOf, type AskedCall, type GatewayCall } from '../relay-request.ts';
import { upstreamHeaders } from '../relay-headers.ts';
import { askedHashOf } from '../route-keys.ts';
import { RequestHeaders } from '../upstream/request-headers.ts';
import type { HeaderList } from '../upstream/message-head.ts';

export interface SaidParts extends AskedCall {
  /** Names and values in turn, as they came. */
  readonly rawHeaders: HeaderList;
  readonly userAgent: string | null;
}

export class SaidHead {
  readonly rawHeaders: HeaderList;
  readonly userAgent: string | null;
  /** null = it asks nothing of the gateway. */
  readonly call: GatewayCall | null;
  #keyHash: string | null | undefined;
  #passed: { readonly authorization: string | null; readonly headers: RequestHeaders } | null =
    null;

  constructor(parts: SaidParts) {
    this.rawHeaders = parts.rawHeaders;
    this.userAgent = parts.userAgent;
    this.call = callOf(parts);
  }

  /** Of the key that came with it; null = none of ours did. */
  get keyHash(): string | null {
    if (this.#keyHash === undefined) {
      const key = this.call?.key;
      this.#keyHash = typeof key === 'string' ? askedHashOf(key) : null;
    }
    return this.#keyHash;
  }

  /** Those that go up, with the upstream's own key. */
  passed(authorization: string | null): RequestHeaders {
    if (this.#passed?.authorization !== authorization) {
      const key = this.call?.key;
      const ownKey = typeof key === 'string' ? key : null;
      const headers = new RequestHeaders(
        upstreamHeaders(this.rawHeaders, { ownKey, authorization }),
      );
      this.#passed = { authorization, headers };
    }
    return this.#passed.headers;
  }
}
