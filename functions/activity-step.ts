/** One adapter for all activities: JSON in, an answer out, never an exception for what the orchestrator has to decide. */

import type { ActivityHandler } from 'durable-functions';
import * as df from 'durable-functions';
import { ACTIVITY_PAYLOAD_BYTES_MAX } from '../src/limits.ts';
import { serviceOfProcess } from '../src/service/composition.ts';
import { metered, type RequestCounts } from '../src/service/metering.ts';
import type { Service } from '../src/service/service.ts';
import { type ErrorLog, problemOf } from './problems.ts';
import type { StepAnswer, StepInput, StepName, StepOutput } from './steps.ts';

type StepRun<N extends StepName> = (service: Service, input: StepInput<N>, log: StepLog) => Promise<StepOutput<N>>;

export interface StepLog extends ErrorLog {
  log(...parts: unknown[]): void;
}

/** Every registered step by its name; how a test runs a step without the engine. */
export const registeredSteps = new Map<
  string,
  (service: Service, input: unknown, log: StepLog) => Promise<StepAnswer<unknown>>
>();

export function step<N extends StepName>(name: N, run: StepRun<N>): void {
  const answer = async (service: Service, input: unknown, log: StepLog): Promise<StepAnswer<unknown>> =>
    await answerOf(name, log, async () => await run(service, input as StepInput<N>, log));
  registeredSteps.set(name, answer);
  const handler: ActivityHandler = async (input: unknown, context) =>
    await answer(await serviceOfProcess(), input, context);
  df.app.activity(name, { handler });
}

async function answerOf<T>(name: string, log: StepLog, run: () => Promise<T>): Promise<StepAnswer<T>> {
  const requests: RequestCounts = {};
  try {
    const value = await metered(requests, run);
    const answer = { ok: true, value, requests } as const;
    requirePayload(name, answer);
    return answer;
  } catch (error) {
    return { ok: false, problem: problemOf(error, log, `The step ${name}`), requests };
  }
}

function requirePayload(name: string, answer: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(answer));
  if (bytes > ACTIVITY_PAYLOAD_BYTES_MAX) {
    throw new Error(`The answer of the step ${name} has ${bytes} bytes`);
  }
}
