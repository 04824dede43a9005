/** Agents that Harbor has and that cannot be used here, each with the reason. */
export const refusedAgents: ReadonlyMap<string, string> = new Map([
  [
    'gemini-cli',
    'it speaks only the dialect of Google (streamGenerateContent), which the gateway does not translate',
  ],
  [
    'goose',
    'its program is neither in the registry of npm nor on PyPI: it is fetched by a script from another place, where no version can be pinned and checked',
  ],
  [
    'openhands',
    'what PyPI has under the name that Harbor installs (openhands-ai) is a server, without the command that works on one task; the program that took its place (openhands) needs packages that are there as source alone, and to install those is to execute them on this machine',
  ],
]);
