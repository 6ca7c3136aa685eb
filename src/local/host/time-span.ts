/** .NET `TimeSpan` texts as host.json writes them: `[d.]hh:mm:ss[.fffffff]`. */

const TIME_SPAN = /^(?:(\d+)\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,7}))?)?$/;

/** In milliseconds; undefined when the text is not a time span. */
export function parseTimeSpan(text: string): number | undefined {
  const match = TIME_SPAN.exec(text.trim());
  if (match === null) return undefined;
  const [, days = '0', hours = '0', minutes = '0', seconds = '0', fraction = ''] = match;
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined;
  const wholeSeconds = ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
  return wholeSeconds * 1000 + Math.trunc(Number(fraction.padEnd(7, '0')) / 10_000);
}

/** As .NET prints it: days and fractions only when there are any. */
export function formatTimeSpan(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / 1000);
  const pad = (value: number): string => String(value).padStart(2, '0');
  const days = Math.trunc(seconds / 86_400);
  const clock = `${pad(Math.trunc(seconds / 3600) % 24)}:${pad(Math.trunc(seconds / 60) % 60)}:${pad(seconds % 60)}`;
  const fraction = milliseconds % 1000;
  return `${days === 0 ? '' : `${days}.`}${clock}${fraction === 0 ? '' : `.${String(fraction * 10_000).padStart(7, '0')}`}`;
}
