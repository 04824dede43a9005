/** A trainer's view of collections, over HTTP. */
import assert from 'node:assert/strict';
import { collectionDocument, type CollectionDocument } from '../../src/wire/api/collection.ts';
import { until } from '../support/until.ts';

export interface Line {
  readonly type: string;
  readonly cursor: number;
  readonly [field: string]: unknown;
}

export class CollectionClient {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, key?: string) {
    this.#url = `${url}/api/v1`;
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  }

  create(body: unknown): Promise<CollectionDocument> {
    return this.#document('POST', '', body);
  }

  look(id: string): Promise<CollectionDocument> {
    return this.#document('GET', `/${id}`);
  }

  change(id: string, what: string, body?: unknown): Promise<CollectionDocument> {
    return this.#document('POST', `/${id}/${what}`, body);
  }

  async status(method: string, at: string, body?: unknown): Promise<number> {
    const answer = await this.#ask(method, `/collections${at}`, body);
    await answer.text();
    return answer.status;
  }

  async rolloutStatus(id: string): Promise<string> {
    const answer = await this.#ask('GET', `/rollouts/${id}`);
    const { state } = (await answer.json()) as { state: string };
    return state;
  }

  /** So many rollouts run. */
  running(count: number): Promise<void> {
    return until(`${count} rollouts run`, async () => {
      const answer = await this.#ask('GET', '/rollouts?state=running');
      return ((await answer.json()) as { rollouts: unknown[] }).rollouts.length === count;
    });
  }

  /** Those of a stream to its end, or to the first line of a type; signs of life are left out. */
  async lines(
    id: string,
    { after, until: last }: { readonly after?: number; readonly until?: string } = {},
  ): Promise<Line[]> {
    const query = after === undefined ? '' : `?after=${after}`;
    const answer = await this.#ask('GET', `/collections/${id}/groups${query}`);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-type'), 'application/x-ndjson');
    const lines: Line[] = [];
    let rest = '';
    for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + text).split('\n');
      rest = parts.pop()!;
      for (const part of parts) {
        const line = JSON.parse(part) as Line;
        if (line.type === 'idle') continue;
        lines.push(line);
        // Leaving the loop ends the connection.
        if (line.type === last) return lines;
      }
    }
    return lines;
  }

  async #document(method: string, at: string, body?: unknown): Promise<CollectionDocument> {
    const answer = await this.#ask(method, `/collections${at}`, body);
    const text = await answer.text();
    assert.ok(answer.ok, `${answer.status} ${text}`);
    const document: unknown = JSON.parse(text);
    assert.deepEqual(collectionDocument.parse(document), document);
    return collectionDocument.parse(document);
  }

  #ask(method: string, at: string, body?: unknown): Promise<Response> {
    return fetch(`${this.#url}${at}`, {
      method,
      headers: {
        ...this.#headers,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }
}
