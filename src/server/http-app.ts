import type { IncomingMessage } from 'node:http';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { ServerLimits } from './ports.ts';
import { Refusal, refusalOf } from './refusal.ts';

export interface HttpAppOptions {
  readonly limits: ServerLimits;
  readonly logger: Logger;
  /** Where a request goes: `url` is a path and query. */
  readonly rewriteUrl?: (url: string, raw: IncomingMessage) => string;
  /** Methods that a path has, for 405; empty = there is no such path. */
  readonly methodsOf: (path: string) => readonly string[];
}

const maxHeaderBytes = 16 * 1_024;
/** A rollout's id of the largest size, each of its bytes percent-encoded, and a file's path. */
const maxParamLength = 8_192;
/** How often connections are looked through for requests that do not arrive. */
const checkEveryMs = 2_000;
const tcpKeepAliveMs = 60_000;

/** An HTTP server with our limits and our answers to what goes wrong. Routes read bodies with `readJson`. */
export function buildHttpApp(options: HttpAppOptions): FastifyInstance {
  const { limits, logger, rewriteUrl, methodsOf } = options;
  const refused = async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const refusal = refusalOf(error);
    // What a route refuses by itself is an answer, whatever its status.
    if (refusal.status >= 500 && !(error instanceof Refusal)) {
      const { method, routeOptions } = request;
      logger.log('error', 'a request failed', {
        ...{ method, route: routeOptions.url ?? null, error: messageOf(error) },
        stack: error instanceof Error ? (error.stack ?? null) : null,
      });
    }
    await reply.status(refusal.status).headers(refusal.headers).send(refusal.body);
  };
  const app = fastify({
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestTimeoutMs,
    http: {
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(checkEveryMs, limits.headersTimeoutMs),
      maxHeaderSize: maxHeaderBytes,
      // An answer may take hours: what is between must not forget the connection, and a client that is gone is noticed.
      ...{ keepAlive: true, keepAliveInitialDelay: tcpKeepAliveMs },
    },
    routerOptions: { maxParamLength },
    frameworkErrors: (error, request, reply) => void refused(error, request, reply),
    clientErrorHandler(error, socket) {
      if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy();
      const [status, reason] = lineOf(error.code);
      const body = JSON.stringify({ detail: reason });
      socket.end(
        `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
    },
    rewriteUrl(raw) {
      const url = pathOf(raw.url ?? '/');
      return rewriteUrl?.(url, raw) ?? url;
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.setErrorHandler(refused);
  const notFound = ({ method, url }: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const allowed = methodsOf(url.split('?', 1)[0] ?? url);
    const isWrongMethod = allowed.length > 0 && !allowed.includes(method);
    return reply.send(
      isWrongMethod
        ? new Refusal(405, 'Method Not Allowed', { allow: allowed.join(', ') })
        : new Refusal(404, 'Not Found'),
    );
  };
  app.setNotFoundHandler(notFound);
  // Before a body is read: nobody showed a key.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) notFound(request, reply);
    else done();
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    reply.header('x-content-type-options', 'nosniff');
    done();
  });
  return app;
}

/** Clients that believe to speak to a proxy send the whole address. */
function pathOf(url: string): string {
  const path = /^https?:\/\/[^/?]*(.*)$/is.exec(url)?.[1] ?? url;
  return path === '' ? '/' : path;
}

function lineOf(code: string): readonly [status: number, reason: string] {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return [408, 'Request Timeout'];
  if (code === 'HPE_HEADER_OVERFLOW') return [431, 'Request Header Fields Too Large'];
  return [400, 'Bad Request'];
}
