import { AriusError } from '../errors.ts';

/**
 * The 512-byte header blocks of a tar (POSIX ustar and pax). What is written is reproducible: fixed times, modes and
 * owners. What is read is checked: a block whose checksum does not hold is not a header. We parse them ourselves because
 * the library at hand takes a tar that is cut off between two members for a complete one.
 */

export const TAR_BLOCK_BYTES = 512;
/** Regular file, in both spellings of the format. */
const REGULAR_TYPES = ['0', '\0'];
const PAX_TYPE = 'x';
const MODE = 0o644;
const CHECKSUM_OFFSET = 148;
const CHECKSUM_BYTES = 8;
const SPACE = 0x20;

export interface TarHeader {
  readonly kind: 'file' | 'pax';
  readonly name: string;
  readonly sizeBytes: number;
}

export function formatTarHeader(name: string, sizeBytes: number): Uint8Array {
  const block = Buffer.alloc(TAR_BLOCK_BYTES);
  block.write(name, 0, 100, 'latin1');
  writeOctal(block, 100, 8, MODE);
  writeOctal(block, 108, 8, 0); // owner
  writeOctal(block, 116, 8, 0); // group
  writeOctal(block, 124, 12, sizeBytes);
  writeOctal(block, 136, 12, 0); // modified
  block.write('0', 156, 'latin1');
  block.write('ustar\u000000', 257, 'latin1');
  writeOctal(block, CHECKSUM_OFFSET, 7, checksumOf(block));
  block[CHECKSUM_OFFSET + 7] = SPACE;
  return block;
}

/** Undefined for a block of zeros, which marks the end. */
export function parseTarHeader(bytes: Uint8Array): TarHeader | undefined {
  const block = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (block.every((byte) => byte === 0)) {
    return undefined;
  }
  if (parseOctal(block, CHECKSUM_OFFSET, CHECKSUM_BYTES) !== checksumOf(block)) {
    throw tarCorrupt('the checksum of a header does not hold');
  }
  const type = block.toString('latin1', 156, 157);
  if (type !== PAX_TYPE && !REGULAR_TYPES.includes(type)) {
    throw tarCorrupt(`it has an entry of type ${JSON.stringify(type)}`);
  }
  return {
    kind: type === PAX_TYPE ? 'pax' : 'file',
    name: parseText(block, 0, 100),
    sizeBytes: parseOctal(block, 124, 12),
  };
}

/** The records `<length> <key>=<value>\n` of a pax header. */
export function parsePaxRecords(bytes: Uint8Array): Map<string, string> {
  const records = new Map<string, string>();
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let offset = 0; offset < data.length; ) {
    const space = data.indexOf(SPACE, offset);
    const length = Number(data.toString('latin1', offset, space));
    const end = offset + length;
    const equals = data.indexOf('=', space);
    if (space < 0 || !Number.isInteger(length) || end > data.length || equals < 0 || equals >= end || end <= space) {
      throw tarCorrupt('an extended header is damaged');
    }
    records.set(data.toString('utf8', space + 1, equals), data.toString('utf8', equals + 1, end - 1));
    offset = end;
  }
  return records;
}

export function tarCorrupt(problem: string): AriusError {
  return new AriusError(
    'blob-corrupt',
    `A tar bundle cannot be read: ${problem}`,
    'Run a check of the repository; archive the affected files again if they still exist.',
  );
}

/** The sum of all bytes, the checksum's own counted as spaces. */
function checksumOf(block: Buffer): number {
  return (
    CHECKSUM_BYTES * SPACE + sumOf(block) - sumOf(block.subarray(CHECKSUM_OFFSET, CHECKSUM_OFFSET + CHECKSUM_BYTES))
  );
}

function sumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) {
    sum += byte;
  }
  return sum;
}

function writeOctal(block: Buffer, offset: number, fieldBytes: number, value: number): void {
  block.write(`${value.toString(8).padStart(fieldBytes - 1, '0')}\0`, offset, fieldBytes, 'latin1');
}

function parseText(block: Buffer, offset: number, fieldBytes: number): string {
  const field = block.toString('latin1', offset, offset + fieldBytes);
  const end = field.indexOf('\0');
  return end < 0 ? field : field.slice(0, end);
}

function parseOctal(block: Buffer, offset: number, fieldBytes: number): number {
  const text = parseText(block, offset, fieldBytes).trim();
  if (!/^[0-7]*$/.test(text)) {
    throw tarCorrupt('a number in a header cannot be read');
  }
  return text === '' ? 0 : Number.parseInt(text, 8);
}
