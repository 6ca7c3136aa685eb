/** Timers leave a note each time. */

import { app, type Timer } from '@azure/functions';
import * as df from 'durable-functions';
import { note as noteLine } from '../support/notes.ts';

function note(record: Record<string, unknown>): void {
  noteLine(JSON.stringify(record));
}

app.timer('everyHour', {
  schedule: '%EVERY_HOUR%',
  handler: (timer: Timer) => note({ timer: 'everyHour', isPastDue: timer.isPastDue, status: timer.scheduleStatus }),
});

app.timer('quick', {
  schedule: '00:00:00.100',
  handler: async () => {
    note({ quick: 'begin' });
    await new Promise((resolve) => setTimeout(resolve, 250));
    note({ quick: 'end' });
  },
});

df.app.client.timer('starter', {
  schedule: '0 0 0 1 1 *',
  handler: async (_: Timer, client: df.DurableClient) => {
    await client.startNew('sequence', { instanceId: 'by-timer', input: {} });
  },
});
