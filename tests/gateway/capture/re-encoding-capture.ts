/** The mistake that exactness guards against, on purpose: a capture that keeps the text of an answer and makes its ids by encoding it again. */
import type { Vocabulary } from '../../../src/engines/server/token-model.ts';
import type {
  CallCapture,
  CallRecord,
  RouteCapture,
} from '../../../src/gateway/capture/call-capture.ts';
import { encodedAgain } from '../../chaos/re-encoding-client.ts';

export function reEncodingCapture(capture: CallCapture, vocabulary: Vocabulary): CallCapture {
  return {
    open: (...opening) => {
      const route = capture.open(...opening);
      return route && spoiledRoute(route, vocabulary);
    },
    fileOf: (rolloutId) => capture.fileOf(rolloutId),
    left: () => capture.left(),
    forget: (rolloutId) => capture.forget(rolloutId),
  };
}

function spoiledRoute(route: RouteCapture, vocabulary: Vocabulary): RouteCapture {
  return {
    get activity() {
      return route.activity;
    },
    unknownFields: route.unknownFields,
    ...(route.wanted !== undefined && { wanted: route.wanted }),
    room: (signal) => route.room(signal),
    written: () => route.written(),
    close: () => route.close(),
    begin: () => spoiledRecord(route.begin(), vocabulary),
  };
}

function spoiledRecord(record: CallRecord, vocabulary: Vocabulary): CallRecord {
  return {
    sent: (request) => record.sent(request),
    part: (part) => record.part(encodedAgain(part, vocabulary)),
    ended: (call) => record.ended(call),
  };
}
