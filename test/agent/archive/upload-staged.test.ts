import { describe, expect, it } from 'vitest';
import type { Carrier } from '../../../src/agent/archive/archive-context.ts';
import { confirmationOf } from '../../../src/agent/archive/commit-chunk.ts';
import { EntryRecorder } from '../../../src/agent/archive/entry-recorder.ts';
import type { SpooledBody } from '../../../src/agent/archive/spool.ts';
import { uploadStaged } from '../../../src/agent/archive/upload-staged.ts';
import { STAGED_BLOCK_BYTES } from '../../../src/limits.ts';
import { archiveContext, type TestContext } from '../support/archive-context.ts';
import { ConnectionCut, type FakeService } from '../support/fake-service.ts';
import { startFakeService } from '../support/run-command.ts';

const HASH = 'ab'.repeat(32) as Carrier['contentHash'];
/** A block and a bit: the smallest body with two blocks. */
const BODY_BYTES = STAGED_BLOCK_BYTES + 1000;
const carrier: Carrier = { fileId: 1, path: 'big', sizeBytes: BODY_BYTES, contentHash: HASH, attempts: 1 };

async function* pieces(): AsyncGenerator<Uint8Array> {
  const piece = 2 ** 20;
  for (let offset = 0; offset < BODY_BYTES; offset += piece) {
    yield Buffer.alloc(Math.min(piece, BODY_BYTES - offset), offset / piece);
  }
}

interface Staging extends TestContext {
  readonly service: FakeService;
  readonly body: SpooledBody;
  upload(): ReturnType<typeof uploadStaged>;
}

async function staging(): Promise<Staging> {
  const service = await startFakeService();
  const test = await archiveContext(service);
  const body = await test.context.spool.write(pieces());
  const recorder = new EntryRecorder(test.context.api, test.context.runId);
  const confirm = async () => confirmationOf((await recorder.record(HASH)).outcome);
  return { ...test, service, body, upload: () => uploadStaged(test.context, carrier, body, confirm) };
}

describe('uploadStaged', () => {
  it('stages blocks in order, and lets the service assemble the chunk', async () => {
    const { service, body, upload } = await staging();
    service.operationPolls = 1;
    expect(await upload()).toEqual({ confirmation: 'committed', created: true });
    expect(service.count('block')).toBe(2);
    const blob = service.blobs.get(`chunks/${HASH}`);
    expect(blob?.metadata).toMatchObject({ arius_type: 'large', chunk_size: String(BODY_BYTES) });
    let at = 0;
    for await (const bytes of body.open()) {
      expect(blob?.body.subarray(at, at + bytes.byteLength).equals(bytes)).toBe(true);
      at += bytes.byteLength;
    }
    const ids = [...(service.staged.get(`staging-${HASH}`)?.keys() ?? [])];
    expect(new Set(ids.map((id) => id.length)).size).toBe(1);
  });

  it('sends nothing when the chunk is there already', async () => {
    const { service, upload } = await staging();
    await upload();
    service.requests.length = 0;
    expect(await upload()).toEqual({ confirmation: 'committed', created: false });
    expect(service.count('block')).toBe(0);
  });

  it('renews the grant of a slow upload, and keeps the blocks that are staged', async () => {
    const { service, upload } = await staging();
    let grants = 0;
    service.intercept = (route) =>
      route === 'stagingGrant' && grants++ === 0
        ? {
            status: 200,
            body: {
              outcome: 'granted',
              stagingName: `staging-${HASH}`,
              url: `${service.url}/blob/staging-${HASH}?sp=w&sig=expired`,
              expiresAt: new Date().toISOString(),
            },
          }
        : undefined;
    expect(await upload()).toEqual({ confirmation: 'committed', created: true });
    expect(grants).toBe(2);
  });

  it('repeats a block whose connection broke', async () => {
    const { service, upload } = await staging();
    let cuts = 2;
    service.after = ({ kind }) => {
      if (kind === 'block' && cuts-- > 0) {
        throw new ConnectionCut();
      }
    };
    expect(await upload()).toEqual({ confirmation: 'committed', created: true });
  });

  it('waits when another writer may be at work', async () => {
    const { service, upload } = await staging();
    service.intercept = (route) =>
      route === 'stagingGrant'
        ? {
            status: 409,
            body: { type: 'x', title: 'x', status: 409, code: 'not-finished', detail: 'Busy.', next: 'Later.' },
          }
        : undefined;
    expect(await upload()).toEqual({ confirmation: 'debris', created: false });
  });
});
