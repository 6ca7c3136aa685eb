/** Waiting and chance, from outside, so that a simulation is deterministic. */

export interface Pacing {
  sleep(ms: number): Promise<void>;
  /** In [0, 1). */
  random(): number;
}

/** Full jitter: uniform up to base × 2^attempt, no more than the maximum. Those who met once do not meet again. */
export async function backOff(pacing: Pacing, attempt: number, baseMs: number, maxMs: number): Promise<void> {
  await pacing.sleep(pacing.random() * Math.min(baseMs * 2 ** attempt, maxMs));
}
