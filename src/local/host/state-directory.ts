/**
 * The directory of one task hub belongs to one process: two would interleave their journals. The claim is a listening
 * socket, which ends with the process however it dies; a leftover socket file nobody answers on is taken over.
 */

import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Another host works in this state directory; this one does not start. */
export class StateDirectoryError extends Error {
  override readonly name = 'StateDirectoryError';
}

export async function claimStateDirectory(directory: string): Promise<Server> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = socketPath(realpathSync(directory));
  if (await answers(path)) {
    throw new StateDirectoryError(`Another process uses ${directory}. Stop it, or choose another state directory.`);
  }
  if (process.platform !== 'win32') rmSync(path, { force: true });
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  server.unref();
  return server;
}

/** A hash, because the path of a socket is limited to about 100 bytes. */
function socketPath(directory: string): string {
  const name = `functions-host-${createHash('sha256').update(directory).digest('hex').slice(0, 24)}`;
  return process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), `${name}.sock`);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
