import { setFlagsFromString } from 'node:v8';

/**
 * Bounds how far the heap of this process grows between two collections of all of it. The text of a stream lives for as long as the stream, which makes it old before
 * it is garbage; left to itself V8 lets old garbage pile up to twice what is alive and more, and with a thousand streams hundreds of MiB come and go.
 */
export function collectEarly(): void {
  setFlagsFromString(`--heap-growing-percent=${growingPercent}`);
}

/** Of what was alive when it was last looked at. */
const growingPercent = 50;
