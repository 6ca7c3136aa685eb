import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatTicks,
  formatTicksShort,
  InvalidTimestampError,
  parseTimestamp,
  ticksOfNanoseconds,
} from '../../src/repository/timestamps.ts';
import { vectors } from '../support/bytes.ts';

const TICKS_MIN = parseTimestamp('0001-01-01T00:00:00Z');
const TICKS_MAX = parseTimestamp('9999-12-31T23:59:59.9999999Z');
const anyTicks = fc.bigInt({ min: TICKS_MIN, max: TICKS_MAX });

describe('timestamps', () => {
  it.each(vectors('filetrees.json').timestamps as { unixNanoseconds: string; text: string }[])(
    '$unixNanoseconds ns are $text',
    ({ unixNanoseconds, text }) => {
      expect(formatTicks(ticksOfNanoseconds(BigInt(unixNanoseconds)))).toBe(text);
    },
  );

  it('come back as they were written, over all years of the format', () => {
    fc.assert(
      fc.property(anyTicks, (ticks) => {
        expect(formatTicks(ticks)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}\+00:00$/);
        expect(parseTimestamp(formatTicks(ticks))).toBe(ticks);
        expect(parseTimestamp(formatTicksShort(ticks))).toBe(ticks);
      }),
    );
  });

  it('are in the order of their text', () => {
    fc.assert(
      fc.property(anyTicks, anyTicks, (a, b) => {
        expect(formatTicks(a) < formatTicks(b)).toBe(a < b);
      }),
    );
  });

  it('cut nanoseconds downwards, before 1970 too', () => {
    expect(ticksOfNanoseconds(199n)).toBe(1n);
    expect(ticksOfNanoseconds(-1n)).toBe(-1n);
    expect(ticksOfNanoseconds(-100n)).toBe(-1n);
    expect(formatTicks(-1n)).toBe('1969-12-31T23:59:59.9999999+00:00');
  });

  it.each([
    ['2026-03-25T10:00:00Z', '2026-03-25T10:00:00.0000000+00:00'],
    ['2026-03-25T10:00:00', '2026-03-25T10:00:00.0000000+00:00'],
    ['2026-03-25T10:00:00.5+02:00', '2026-03-25T08:00:00.5000000+00:00'],
    ['2026-03-25T10:00:00.12345678912-05:30', '2026-03-25T15:30:00.1234567+00:00'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.0000000+00:00'],
  ])('%s is read leniently', (text, canonical) => {
    expect(formatTicks(parseTimestamp(text))).toBe(canonical);
  });

  it.each([
    '',
    'yesterday',
    '2026-03-25',
    '2026-03-25T10:00',
    '2026-02-30T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-03-25T24:00:00Z',
    '2026-03-25T10:61:00Z',
    '2026-03-25 10:00:00Z',
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00+01:00',
    ' 2026-03-25T10:00:00Z',
  ])('%j is not a time', (text) => {
    expect(() => parseTimestamp(text)).toThrow(InvalidTimestampError);
  });

  it('refuse to be written outside the years of the format', () => {
    expect(() => formatTicks(TICKS_MAX + 1n)).toThrow(InvalidTimestampError);
    expect(() => formatTicks(TICKS_MIN - 1n)).toThrow(InvalidTimestampError);
  });
});
