/** Faults of the suite's engine: a message that holds the word is struck. */
export const faults = [
  ['FAULT-500', { fault: 'status-500' }],
  ['FAULT-429', { fault: 'overload', status: 429, retryAfterSeconds: 7 }],
  ['FAULT-503', { fault: 'overload', status: 503 }],
  ['FAULT-OVERFLOW', { fault: 'context-overflow' }],
  ['FAULT-RESET', { fault: 'reset', afterTokens: 2 }],
  ['FAULT-TRUNCATED', { fault: 'truncate-body', afterTokens: 2 }],
  ['FAULT-MALFORMED', { fault: 'malformed-chunk', afterTokens: 2 }],
  ['FAULT-STALL', { fault: 'stall', afterTokens: 2, ms: 'forever' }],
].map(([word, rule]) => ({ match: { promptContains: word }, ...(rule as object) }));
