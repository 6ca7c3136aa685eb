/** What the conformance suites need of an adapter under test. */

import { AriusError } from '../../../src/errors.ts';
import type { Storage } from '../../../src/storage/ports.ts';

export interface PlainRequest {
  readonly method: 'GET' | 'PUT' | 'HEAD' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

/** Loses messages between the adapter and its storage. */
export interface MessageLoss {
  /** Of the next request that changes something, the response is lost: it was applied. */
  loseNextResponse(): void;
  /** The next request that changes something is lost before it is applied. */
  loseNextRequest(): void;
  /** How many messages were lost since the start. */
  lost(): number;
}

export interface ConformanceSubject {
  readonly storage: Storage;
  /** The same account, reached through a connection that loses messages. */
  readonly lossy: Storage;
  readonly loss: MessageLoss;
  /** What a client without the adapter does with a signed URL. Returns the status. */
  plainRequest(url: string, request: PlainRequest): Promise<number>;
  stop(): Promise<void>;
}

export type SubjectFactory = () => Promise<ConformanceSubject>;

let nameCount = 0;

/** A name that no other test uses: letters and digits, as containers, tables and queues allow. */
export function freshName(): string {
  nameCount += 1;
  return `conf${process.pid}x${Date.now().toString(36)}x${nameCount}`;
}

/** The code of the AriusError that a call must fail with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (rejection: unknown) => rejection,
  );
  return error instanceof AriusError ? error.code : `not an AriusError: ${String(error)}`;
}

export function defined<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new Error('Expected a value');
  }
  return value;
}
