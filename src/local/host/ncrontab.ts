/**
 * Schedules of timer triggers: NCRONTAB with six fields (seconds first) or five, or a time span; UTC; day and weekday
 * must both match. What other cron dialects allow beyond that is refused, since Azure would refuse it.
 */

import { Cron } from 'croner';
import { parseTimeSpan } from './time-span.ts';

const FIELD = /^[\d*,/\-A-Za-z]+$/;
const WORDS = /^(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)$/i;

export interface Schedule {
  /** The first time later than `after`. */
  next(after: Date): Date;
}

/** The text is no schedule; the app does not start. */
class ScheduleError extends Error {
  override readonly name = 'ScheduleError';
}

export function parseSchedule(expression: string): Schedule {
  const intervalMs = parseTimeSpan(expression);
  if (intervalMs !== undefined) {
    if (intervalMs <= 0) throw new ScheduleError(`The schedule "${expression}" must be longer than nothing.`);
    return { next: (after): Date => new Date(after.getTime() + intervalMs) };
  }
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5 && fields.length !== 6)
    throw new ScheduleError(`"${expression}" is not an NCRONTAB schedule.`);
  for (const field of fields) checkField(field, expression);
  const weekdays = fields.at(-1) ?? '';
  if (/7/.test(weekdays)) throw new ScheduleError(`"${expression}": weekdays are 0 (Sunday) to 6.`);
  let cron: Cron;
  try {
    cron = new Cron(fields.join(' '), { timezone: 'UTC', domAndDow: true, mode: '5-or-6-parts', paused: true });
  } catch (error) {
    throw new ScheduleError(`"${expression}" is not an NCRONTAB schedule: ${(error as Error).message}`);
  }
  return {
    next: (after): Date => {
      const next = cron.nextRun(after);
      if (next === null) throw new ScheduleError(`The schedule "${expression}" has no next time.`);
      return next;
    },
  };
}

function checkField(field: string, expression: string): void {
  const words = field.split(/[^A-Za-z]+/).filter((word) => word !== '');
  if (!FIELD.test(field) || !words.every((word) => WORDS.test(word))) {
    throw new ScheduleError(`"${expression}": the field "${field}" is not NCRONTAB.`);
  }
}
