/** What the theory of queues says in closed form. Rates per millisecond, times in milliseconds. */

/** M/M/c: the mean time in the line, by Erlang's formula C. */
export function erlangWaitMs(servers: number, arrivals: number, service: number): number {
  const load = arrivals / service;
  // Erlang's B by its recursion, and C from it: the powers and factorials of the textbook overflow.
  let blocked = 1;
  for (let count = 1; count <= servers; count += 1)
    blocked = (load * blocked) / (count + load * blocked);
  const share = load / servers;
  const waits = blocked / (1 - share * (1 - blocked));
  return waits / (servers * service - arrivals);
}

/** M/G/1: Pollaczek and Khinchine, with the second moment of the service time. */
export function pollaczekKhinchineWaitMs(
  arrivals: number,
  service: { readonly mean: number; readonly secondMoment: number },
): number {
  return (arrivals * service.secondMoment) / (2 * (1 - arrivals * service.mean));
}

/** Users who think for exponential times, and one server with exponential service: rounds per millisecond, by mean value analysis. */
export function closedThroughput(users: number, thinkMs: number, serviceMs: number): number {
  let inLine = 0;
  let throughput = 0;
  for (let count = 1; count <= users; count += 1) {
    const responseMs = serviceMs * (1 + inLine);
    throughput = count / (thinkMs + responseMs);
    inLine = throughput * responseMs;
  }
  return throughput;
}
