import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { newCounters } from '../../src/agent/archive/archive-context.ts';
import { addRequests, estimateCost } from '../../src/agent/archive/cost.ts';
import { ArchiveDisplay } from '../../src/agent/output/archive-display.ts';
import { counted, formatBytes, formatDuration } from '../../src/agent/output/format.ts';
import { HumanOutput } from '../../src/agent/output/human-output.ts';
import { JsonOutput } from '../../src/agent/output/json-output.ts';
import type { Status } from '../../src/agent/output/output.ts';
import { type PromptInput, promptPassphrase } from '../../src/agent/passphrase-prompt.ts';
import { printable, printableBytes } from '../../src/agent/printable.ts';
import { AriusError } from '../../src/errors.ts';

const status = (): Status => ({ fields: { filesScanned: 3 }, lines: ['scan 3', 'hash 2'], short: 'scanned 3' });
const error = new AriusError('partly-done', 'One\n  failed.', 'Look at it.');

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function streams(terminal: boolean) {
  const said = { stdout: '', stderr: '' };
  const stderr = Object.assign(new PassThrough(), { isTTY: terminal, columns: 80, rows: 24 });
  stderr.on('data', (text: Buffer) => {
    said.stderr += text.toString();
  });
  return {
    said,
    stderr,
    stdout: {
      write(text: string) {
        said.stdout += text;
      },
    },
  };
}

describe('HumanOutput', () => {
  const base = { verbose: false, quiet: false, progress: true };

  it('without a terminal says at most one line in ten seconds', () => {
    const { said, stdout, stderr } = streams(false);
    const output = new HumanOutput({ ...base, stdout, stderr });
    output.startStatus(status);
    vi.advanceTimersByTime(9_999);
    expect(said.stderr).toBe('');
    vi.advanceTimersByTime(20_002);
    expect(said.stderr).toBe('scanned 3\n'.repeat(3));
    output.endStatus();
    vi.advanceTimersByTime(60_000);
    expect(said.stderr).toBe('scanned 3\n'.repeat(3));
  });

  it('on a terminal shows a live display that gives way to lasting lines', () => {
    const { said, stdout, stderr } = streams(true);
    const output = new HumanOutput({ ...base, stdout, stderr });
    output.startStatus(status);
    vi.advanceTimersByTime(500);
    expect(said.stderr).toContain('scan 3\nhash 2');
    output.warning('look');
    expect(said.stderr).toContain('warning: look\n');
    output.endStatus();
    output.summary(['done', '  well'], {});
    expect(said.stdout).toBe('done\n  well\n');
  });

  it.each([
    ['--no-progress', { progress: false }],
    ['-q', { quiet: true }],
  ])('%s: no progress', (_, change) => {
    const { said, stdout, stderr } = streams(true);
    const output = new HumanOutput({ ...base, ...change, stdout, stderr });
    output.startStatus(status);
    vi.advanceTimersByTime(60_000);
    output.endStatus();
    expect(said.stderr).toBe('');
  });

  it('puts an error into one line: code, what, and the next step', () => {
    const { said, stdout, stderr } = streams(false);
    new HumanOutput({ ...base, stdout, stderr }).error(error);
    expect(said).toEqual({ stdout: '', stderr: 'error partly-done: One failed. Look at it.\n' });
  });
});

describe('JsonOutput', () => {
  it('writes one object a line, each with its messageType, and a status at most once a second', () => {
    let text = '';
    const output = new JsonOutput({
      stdout: { write: (line) => (text += line) },
      verbose: true,
      quiet: false,
      progress: true,
    });
    output.startStatus(status);
    vi.advanceTimersByTime(2_500);
    output.endStatus();
    output.file('a', { path: 'a\nb' });
    output.warning('look', { path: 'x' });
    output.remark('for people');
    output.summary(['done'], { command: 'archive' });
    output.error(error);
    expect(
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      { messageType: 'status', filesScanned: 3 },
      { messageType: 'status', filesScanned: 3 },
      { messageType: 'file', path: 'a\nb' },
      { messageType: 'warning', message: 'look', path: 'x' },
      { messageType: 'summary', command: 'archive' },
      { messageType: 'error', code: 'partly-done', message: 'One failed.', next: 'Look at it.' },
    ]);
  });
});

describe('ArchiveDisplay', () => {
  it('shows scan, hash, dedup and upload, and the time left once all is scanned', () => {
    const counters = newCounters();
    const sent = { bytesSent: 0 };
    const display = new ArchiveDisplay(counters, sent, 0);
    counters.bytesScanned = 4000;
    counters.bytesHashed = 1000;
    sent.bytesSent = 2048;
    expect(display.status(1000).fields).not.toHaveProperty('secondsLeft');
    counters.scanDone = true;
    const { fields, lines } = display.status(1000);
    expect(fields).toMatchObject({ command: 'archive', phase: 'files', bytesHashed: 1000, secondsLeft: 3 });
    expect(lines).toHaveLength(4);
    expect(lines[3]).toContain('2.00 KiB/s');
    counters.bytesHashed = 4000;
    expect(display.status(2000).fields).not.toHaveProperty('secondsLeft');
  });

  it('shows how far the index is', () => {
    const display = new ArchiveDisplay(newCounters(), { bytesSent: 0 }, 0);
    display.phase('completing');
    display.operation({
      operationId: 'o',
      repository: 'r',
      kind: 'complete',
      state: 'running',
      phase: 'flushing',
      progress: { done: 12, total: 256, unit: 'roots' },
      createdAt: '2026-01-01T00:00:00Z',
      updatedAt: '2026-01-01T00:00:00Z',
      result: null,
      error: null,
    });
    const { short, fields } = display.status(1);
    expect(short).toBe('index   flushing 12/256 roots');
    expect(fields).toMatchObject({ phase: 'completing', operation: { phase: 'flushing' } });
  });
});

describe('numbers for people', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.00 KiB'],
    [1536 * 1024, '1.50 MiB'],
    [123 * 2 ** 30, '123 GiB'],
    [5 * 2 ** 60, '5120 PiB'],
  ])('%i bytes are %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it.each([
    [400, '0.4 s'],
    [59_400, '59 s'],
    [61_000, '1:01 min'],
    [3_723_000, '1:02:03 h'],
  ])('%i ms are %s', (durationMs, text) => {
    expect(formatDuration(durationMs)).toBe(text);
  });

  it('counts in the right number', () => {
    expect([counted(1, 'file'), counted(0, 'file'), counted(2000, 'entry', 'entries')]).toEqual([
      '1 file',
      '0 files',
      '2,000 entries',
    ]);
  });
});

describe('printable', () => {
  it('escapes what would disturb a terminal, and nothing else', () => {
    expect(printable('a\nb\u001b[31m\u202ec é 日本')).toBe('a\\u{a}b\\u{1b}[31m\\u{202e}c é 日本');
    expect(printableBytes(Buffer.from([0x61, 0xff, 0x0a]))).toBe('a\\xff\\x0a');
  });
});

describe('estimateCost', () => {
  it('adds operations by class and storage by tier, and says what it assumes', () => {
    const requests = {
      'blob-write': 10_000,
      'blob-read': 10_000,
      'table-write': 10_000,
      queue: 10_000,
      'blob-delete': 9,
    };
    expect(estimateCost(requests, 2 ** 30, 'cool')).toEqual({
      currency: 'EUR',
      amount: 0.098971,
      monthlyAmount: 0.008601,
      assumptions: expect.stringMatching(/West Europe.*cool.*2026-06-27/) as string,
    });
    expect(estimateCost({ 'blob-list': 10_000, 'blob-head': 10_000 }, 0, 'hot').amount).toBe(0.050144);
  });

  it('adds up what agent and service asked of the storage', () => {
    expect(addRequests({ a: 1, b: 2 }, { b: 3, c: 4 })).toEqual({ a: 1, b: 5, c: 4 });
  });
});

describe('promptPassphrase', () => {
  function terminal() {
    const input = Object.assign(new PassThrough(), { isTTY: true as const, raw: [] as boolean[] });
    return Object.assign(input, {
      setRawMode(on: boolean) {
        input.raw.push(on);
        return input;
      },
    });
  }

  it('takes what is typed without showing it, and corrections', async () => {
    vi.useRealTimers();
    const input = terminal();
    let shown = '';
    const asking = promptPassphrase('Passphrase: ', input as unknown as PromptInput, {
      write: (text) => (shown += text),
    });
    input.write('secreT\u007ft\r');
    expect(await asking).toBe('secret');
    expect(shown).toBe('Passphrase: \n');
    expect(input.raw).toEqual([true, false]);
  });

  it('ends with Ctrl-C as interrupted', async () => {
    vi.useRealTimers();
    const input = terminal();
    const asking = promptPassphrase('?', input as unknown as PromptInput, { write: () => undefined });
    input.write('sec\u0003');
    await expect(asking).rejects.toMatchObject({ code: 'interrupted', exitCode: 130 });
  });
});
