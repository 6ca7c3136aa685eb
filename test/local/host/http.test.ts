import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { START_LIMIT_MS } from '../../conformance/host/target.ts';
import { type LocalSample, startSampleForFile } from './harness.ts';

const WAIT = { timeout: 10_000 };

let sample: LocalSample;
beforeAll(async () => {
  sample = await startSampleForFile({ secrets: { SAMPLE_SECRET: 'a-secret-value' } });
}, START_LIMIT_MS);
afterAll(async () => await sample.host.stop());

/** fetch sets the Host header itself, so a wrong one needs the plain client. */
function getWithHost(host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const call = request(`${sample.host.url}/api/hello`, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on('error', reject).end();
  });
}

describe('an HTTP function', () => {
  it('is logged without secrets when it throws', async () => {
    await sample.fetch('/api/broken');
    // The answer and the log travel by different ways.
    const line = await vi.waitFor(() => {
      const found = sample.lines.find((entry) => entry.includes('broken with'));
      expect(found).toBeDefined();
      return found as string;
    }, WAIT);
    expect(JSON.parse(line)).toMatchObject({ level: 'error', function: 'broken' });
    expect(line).toContain('broken with *** and sig=***');
  });
});

describe('the listener', () => {
  it('refuses a Host header that is not a local name', async () => {
    expect(await getWithHost('evil.example')).toBe(421);
    expect(await getWithHost('localhost:7071')).toBe(200);
  });
});
