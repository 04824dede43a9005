/**
 * Carries out jobs in their order, so many at once. The first that rejects stops the lanes from beginning others.
 *
 * @param {readonly (() => Promise<void>)[]} jobs
 * @param {number} width
 */
export async function inLanes(jobs, width) {
  const waiting = [...jobs];
  const lane = async () => {
    try {
      for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) await job();
    } catch (error) {
      waiting.length = 0;
      throw error;
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
}
