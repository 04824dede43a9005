/**
 * The abort as Miles' trainer does it where agents have no hook, by its published sequence: no sample begins any more, every engine that the router lists
 * is told once to end everything, and then every pending rollout is waited for, without a limit.
 */
const attempts = 60;
const pauseMs = 1_000;

/** Resolves when nothing is pending. */
export async function abortAsMiles(
  routerUrl: string,
  pending: readonly Promise<unknown>[],
): Promise<void> {
  const answer = await fetch(`${routerUrl}/workers`);
  const { workers } = (await answer.json()) as { readonly workers: readonly { url: string }[] };
  const engines = new Set(workers.map(({ url }) => url.replace(/@\d+$/, '')));
  await Promise.all([...engines].map((url) => abortEngine(url)));
  await Promise.allSettled(pending);
}

async function abortEngine(url: string): Promise<void> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const isDone = await fetch(`${url}/abort_request`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ abort_all: true }),
    }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isDone) return;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  throw new Error(`${url} cannot be told to end its requests`);
}
