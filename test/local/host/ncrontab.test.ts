import { describe, expect, it } from 'vitest';
import { parseSchedule } from '../../../src/local/host/ncrontab.ts';

function next(expression: string, after: string): string {
  return parseSchedule(expression).next(new Date(after)).toISOString();
}

describe('NCRONTAB', () => {
  it.each([
    ['0 */5 * * * *', '2026-03-01T10:02:03Z', '2026-03-01T10:05:00.000Z'],
    ['*/5 * * * *', '2026-03-01T10:02:03Z', '2026-03-01T10:05:00.000Z'],
    ['0 0 3 * * *', '2026-03-01T03:00:00Z', '2026-03-02T03:00:00.000Z'],
    ['30 15 8 * Jan-Mar Mon', '2026-03-30T08:15:30Z', '2027-01-04T08:15:30.000Z'],
    ['0 0 0 1,15 * *', '2026-03-02T00:00:00Z', '2026-03-15T00:00:00.000Z'],
    ['0 0 9-17/4 * * 1-5', '2026-03-06T17:30:00Z', '2026-03-09T09:00:00.000Z'],
  ])('%s after %s is %s', (expression, after, expected) => {
    expect(next(expression, after)).toBe(expected);
  });

  it('wants day and weekday both', () => {
    expect(next('0 0 0 13 * 5', '2026-03-14T00:00:00Z')).toBe('2026-11-13T00:00:00.000Z');
  });

  it('is UTC, also over a change of summer time', () => {
    expect(next('0 30 2 * * *', '2026-03-28T12:00:00Z')).toBe('2026-03-29T02:30:00.000Z');
  });

  it('may be a time span', () => {
    expect(next('00:00:30', '2026-03-01T00:00:00Z')).toBe('2026-03-01T00:00:30.000Z');
    expect(next('1.00:00:00', '2026-03-01T00:00:00Z')).toBe('2026-03-02T00:00:00.000Z');
  });

  it.each([
    '',
    '* * *',
    '0 0 L * * *',
    '0 0 ? * * *',
    '0 0 * * * 7',
    '0 0 * * * 5#2',
    '@daily',
    '0 61 * * * *',
    '00:00:00',
  ])('refuses "%s"', (expression) => {
    expect(() => parseSchedule(expression)).toThrow(/schedule|NCRONTAB|weekdays/);
  });
});
