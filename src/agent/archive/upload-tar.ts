/** A packed tar on its way into the repository: proven, created, its members recorded. */

import type { EntryResult } from '../../contract/schemas.ts';
import type { ContentHash } from '../../hashing/hashes.ts';
import { MEMBERS_PER_CALL_MAX } from '../../limits.ts';
import { chunkBlobName, contentTypeOf } from '../../repository/blob-names.ts';
import { formatChunkMetadata } from '../../repository/chunk-metadata.ts';
import type { TarMember } from '../restore/tar-members.ts';
import { type ArchiveContext, carrierFailed } from './archive-context.ts';
import { type Confirmation, commitBody, NAME_TAKEN } from './commit-chunk.ts';
import type { PackedTar } from './pack.ts';
import { proveBody } from './prove.ts';

export async function uploadTar(context: ArchiveContext, tar: PackedTar): Promise<void> {
  try {
    await proveBody(context, tar.body, tar.chunkHash, tar.tarBytes);
    const { created } = await commitBody(
      context,
      chunkBlobName(tar.chunkHash),
      tar.body,
      {
        contentType: contentTypeOf('tar', context.codec.sealed),
        metadata: formatChunkMetadata({ type: 'tar', chunkSize: tar.body.lengthBytes }),
        tier: context.tier,
      },
      () => recordMembers(context, tar),
    );
    if (created) {
      context.counters.chunksUploaded++;
      context.counters.tarsUploaded++;
      context.counters.bytesUploaded += tar.body.lengthBytes;
    }
  } finally {
    await tar.body.remove();
  }
  context.run.tarMembers.drop(tar.id);
}

/** Page by page. When the tar itself is not there, or something else has its name, no member was touched. */
async function recordMembers(context: ArchiveContext, tar: PackedTar): Promise<Confirmation> {
  let after: ContentHash | undefined;
  for (;;) {
    const members = context.run.tarMembers.page(tar.id, after, MEMBERS_PER_CALL_MAX);
    if (members.length === 0) {
      return 'committed';
    }
    const answer = await context.api.recordMembers(tar.chunkHash, {
      runId: context.runId,
      members: members.map(({ content, sizeBytes }) => ({ contentHash: content, originalSize: sizeBytes })),
    });
    if (answer.tar.outcome === 'absent') {
      return 'absent';
    }
    if (answer.tar.outcome === 'debris') {
      forEachMember(context, tar.id, ({ content }) => context.run.setContent(content, 'waiting'));
      return 'debris';
    }
    if (answer.tar.outcome === 'conflict') {
      const why = `the tar it was packed into cannot be stored: ${answer.tar.detail ?? NAME_TAKEN}`;
      forEachMember(context, tar.id, (member) => memberFailed(context, member, why));
      return 'conflict';
    }
    const results = new Map(answer.results.map((result) => [result.contentHash as string, result]));
    for (const member of members) {
      settle(context, member, results.get(member.content));
    }
    after = members.at(-1)?.content;
  }
}

function settle(context: ArchiveContext, member: TarMember, result: EntryResult | undefined): void {
  const outcome = result?.outcome;
  if (outcome === 'recorded') {
    context.run.setContent(member.content, 'stored');
    context.counters.thinChunks++;
    context.counters.entriesRecorded++;
    if (context.report.verbose) {
      context.report.archived(context.run.filePath(member.fileId), 'new');
    }
  } else if (outcome === 'debris') {
    context.run.setContent(member.content, 'waiting');
  } else if (outcome === 'conflict') {
    memberFailed(context, member, result?.detail ?? NAME_TAKEN);
  } else {
    // Its stub vanished again between writing and looking: packed anew in the next round.
    context.run.setContent(member.content, 'lost');
    context.run.setFileState(member.fileId, 'again');
  }
}

function memberFailed(context: ArchiveContext, { fileId, content }: TarMember, why: string): void {
  carrierFailed(context, { fileId, path: context.run.filePath(fileId), contentHash: content }, why);
}

function forEachMember(context: ArchiveContext, tarId: number, visit: (member: TarMember) => void): void {
  let after: ContentHash | undefined;
  for (;;) {
    const members = context.run.tarMembers.page(tarId, after, MEMBERS_PER_CALL_MAX);
    for (const member of members) {
      visit(member);
    }
    after = members.at(-1)?.content;
    if (after === undefined) {
      return;
    }
  }
}
