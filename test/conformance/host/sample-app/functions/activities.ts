/** Activities. Those that count leave a note, so that a test can tell how often they ran. */

import type { InvocationContext } from '@azure/functions';
import * as df from 'durable-functions';
import { note } from '../support/notes.ts';

const failures = new Map<string, number>();

df.app.activity('echo', { handler: (input: unknown) => input });
df.app.activity('kindOf', {
  handler: (input: unknown) => (input === undefined ? 'undefined' : `${typeof input} ${JSON.stringify(input)}`),
});
df.app.activity('double', { handler: (input: number) => input * 2 });
df.app.activity('returnNothing', { handler: () => undefined });
df.app.activity('returnText', { handler: () => 'text' });
df.app.activity('returnBytes', { handler: () => Buffer.from('bytes') });
df.app.activity('fail', {
  handler: (message: string) => {
    throw new Error(message);
  },
});
df.app.activity('throwText', {
  handler: (message: string) => {
    throw message;
  },
});
df.app.activity('failTimes', {
  handler: ({ key, times }: { key: string; times: number }) => {
    const count = (failures.get(key) ?? 0) + 1;
    failures.set(key, count);
    note(`failTimes ${key} ${Date.now()}`);
    if (count <= times) throw new Error(`failure ${count}`);
    return count;
  },
});
df.app.activity('wait', {
  handler: async ({ ms, value, key = '-' }: { ms: number; value: unknown; key?: string }) => {
    note(`wait ${key} begin ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, ms));
    note(`wait ${key} end ${JSON.stringify(value)}`);
    return value;
  },
});
df.app.activity('noop', { handler: (input: number) => input });
df.app.activity('triggerMetadata', { handler: (_: unknown, context: InvocationContext) => context.triggerMetadata });
