export async function run() {
  return { reward: 1 };
}

/** @param {{ options: { onAbort: (input: object) => unknown } }} input */
export async function abort(input) {
  return await input.options.onAbort(input);
}
