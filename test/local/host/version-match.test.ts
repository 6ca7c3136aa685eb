import { describe, expect, it } from 'vitest';
import { mayRun } from '../../../src/local/host/durable/version-match.ts';
import { until } from '../../conformance/host/sample.ts';
import { startSample, temporaryDirectory } from './harness.ts';

const DEFAULT_VERSION = 'AzureFunctionsJobHost__extensions__durableTask__defaultVersion';
const FAILURE_STRATEGY = 'AzureFunctionsJobHost__extensions__durableTask__versionFailureStrategy';

describe('an instance of a version', () => {
  it.each([
    ['1.0', '1.0', true],
    ['1.9', '1.10', true],
    ['1.10', '1.9', false],
    ['1.0.0', '1.0', false],
    ['', '1', true],
    ['2', '1', false],
    // As texts: one number alone is no .NET version.
    ['10', '9', true],
    ['2025-01-01', '2025-02-01', true],
    ['V1', 'v1', true],
    ['7', '', true],
  ])('"%s" runs on a host of "%s": %s', (version, defaultVersion, expected) => {
    expect(mayRun(version, defaultVersion, 'currentorolder')).toBe(expected);
  });

  it('runs on the very same only with Strict, and on any with None', () => {
    expect([mayRun('1', '2', 'strict'), mayRun('2', '2', 'strict')]).toEqual([false, true]);
    expect(mayRun('3', '2', 'none')).toBe(true);
  });
});

describe('the host', () => {
  it('gives instances and their sub-orchestrations its default version', async () => {
    const sample = await startSample({ settings: { [DEFAULT_VERSION]: '2' } });
    expect((await sample.run('version')).output).toEqual({ own: '2', child: '2' });
    const { result } = await sample.client('start', 'version', { input: {}, version: '1' });
    expect((await sample.ended(String(result))).output).toEqual({ own: '1', child: '2' });
  });

  it('leaves a newer instance alone until it is as new itself', async () => {
    const stateDirectory = await temporaryDirectory();
    const older = await startSample({ stateDirectory, settings: { [DEFAULT_VERSION]: '1' } });
    const { result } = await older.client('start', 'version', { input: {}, version: '2' });
    const id = String(result);
    await until(
      () => Promise.resolve(older.lines.join('\n')),
      (lines) => lines.includes('waits for a host of version 2'),
    );
    expect((await older.status(id)).runtimeStatus).toBe('Pending');
    await older.host.stop();
    const newer = await startSample({ stateDirectory, settings: { [DEFAULT_VERSION]: '2' } });
    expect((await newer.ended(id)).runtimeStatus).toBe('Completed');
  });

  it('fails a newer instance when host.json says so', async () => {
    const sample = await startSample({ settings: { [DEFAULT_VERSION]: '1', [FAILURE_STRATEGY]: 'Fail' } });
    const { result } = await sample.client('start', 'version', { input: {}, version: '2' });
    const status = await sample.ended(String(result));
    expect(status.runtimeStatus).toBe('Failed');
    expect(status.output).toContain("version '2'");
  });
});
