#!/usr/bin/env -S node --
// Plain JavaScript that old Node versions can parse, so that they get a sentence and not a syntax error.
var major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  process.stderr.write(
    'slipway needs Node.js 24 or newer, and this is ' +
      process.version +
      ' (' +
      process.execPath +
      '). Install Node.js 24, for example with: npm install --global node@24\n',
  );
  process.exitCode = 1;
} else {
  import('./start.js').then(function (module) {
    return module.start();
  });
}
