/** Hashes as the agent's databases keep them: 32 bytes instead of 64 characters. */

export function bytesOf(hash: string): Uint8Array {
  return Buffer.from(hash, 'hex');
}

/** `value`: a column that holds a hash. */
export function hexOf(value: unknown): string {
  return Buffer.from(value as Uint8Array).toString('hex');
}
