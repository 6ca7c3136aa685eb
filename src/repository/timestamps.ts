/**
 * Times of the format: 100 ns ticks since the Unix epoch, as bigint, so that no digit is lost. Text is UTC, ISO 8601.
 */

const TICKS_PER_SECOND = 10_000_000n;
const TICKS_PER_MILLISECOND = 10_000n;
const NANOSECONDS_PER_TICK = 100n;
const FRACTION_DIGITS = 7;
const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/;
/** The years the format can write, 0001 to 9999. */
const TICKS_MIN = -62_135_596_800n * TICKS_PER_SECOND;
const TICKS_MAX = 253_402_300_800n * TICKS_PER_SECOND - 1n;

/** Occurs when a text is not a time, or a time lies outside the years 0001 to 9999. */
export class InvalidTimestampError extends Error {
  constructor(what: string) {
    super(`Not a time of the repository format: ${what}`);
    this.name = 'InvalidTimestampError';
  }
}

/** `2026-03-25T12:30:00.1234567+00:00`: always seven digits and the offset. */
export function formatTicks(ticks: bigint): string {
  const { seconds, fraction } = split(ticks);
  return `${formatSeconds(seconds)}.${fraction}+00:00`;
}

/** As formatTicks, but without trailing zeros of the fraction; no fraction at all when it is zero. */
export function formatTicksShort(ticks: bigint): string {
  const { seconds, fraction } = split(ticks);
  const digits = fraction.replace(/0+$/, '');
  return `${formatSeconds(seconds)}${digits === '' ? '' : `.${digits}`}+00:00`;
}

/** Any ISO 8601 time with seconds; no offset means UTC; digits beyond 100 ns are cut off. */
export function parseTimestamp(text: string): bigint {
  const match = TIMESTAMP.exec(text);
  if (match === null) {
    throw new InvalidTimestampError(JSON.stringify(text.slice(0, 80)));
  }
  const [, year, month, day, hour, minute, second, fraction = '', offset = 'Z'] = match;
  const date = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const seconds = secondsOf(date);
  const ticks = BigInt(fraction.slice(0, FRACTION_DIGITS).padEnd(FRACTION_DIGITS, '0'));
  return checked((seconds - offsetSeconds(offset)) * TICKS_PER_SECOND + ticks);
}

/** Nanoseconds since the epoch (as `fs.stat` with bigint gives) are cut to 100 ns, downwards also before 1970. */
export function ticksOfNanoseconds(nanoseconds: bigint): bigint {
  return floorDivide(nanoseconds, NANOSECONDS_PER_TICK);
}

/** Whole milliseconds, cut downwards. */
export function millisecondsOfTicks(ticks: bigint): number {
  return Number(floorDivide(ticks, TICKS_PER_MILLISECOND));
}

export function ticksOfMilliseconds(milliseconds: number): bigint {
  return BigInt(milliseconds) * TICKS_PER_MILLISECOND;
}

function split(ticks: bigint): { seconds: bigint; fraction: string } {
  const seconds = floorDivide(checked(ticks), TICKS_PER_SECOND);
  return { seconds, fraction: String(ticks - seconds * TICKS_PER_SECOND).padStart(FRACTION_DIGITS, '0') };
}

function formatSeconds(seconds: bigint): string {
  return new Date(Number(seconds) * 1000).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length);
}

function secondsOf(dateTime: string): bigint {
  const milliseconds = Date.parse(`${dateTime}Z`);
  // The calendar check: Date takes 30 February for 2 March.
  if (Number.isNaN(milliseconds) || !new Date(milliseconds).toISOString().startsWith(dateTime)) {
    throw new InvalidTimestampError(JSON.stringify(dateTime));
  }
  return BigInt(milliseconds / 1000);
}

function offsetSeconds(offset: string): bigint {
  if (offset === 'Z') {
    return 0n;
  }
  const minutes = BigInt(offset.slice(1, 3)) * 60n + BigInt(offset.slice(4, 6));
  return (offset.startsWith('-') ? -minutes : minutes) * 60n;
}

function checked(ticks: bigint): bigint {
  if (ticks < TICKS_MIN || ticks > TICKS_MAX) {
    throw new InvalidTimestampError(`${ticks} ticks lie outside the years 0001 to 9999`);
  }
  return ticks;
}

function floorDivide(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  return dividend % divisor < 0n ? quotient - 1n : quotient;
}
