/** Whether a file system's change times can be trusted. On a network they come from another machine, and may lie. */

import { statfs } from 'node:fs/promises';

/** `statfs` types (linux/magic.h): NFS, SMB, CIFS, SMB2, Ceph, AFS, Coda, NCP, 9p. */
const NETWORK_TYPES: ReadonlySet<number> = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x00c36400, 0x5346414f, 0x73757245, 0x564c, 0x01021997,
]);

export class FileSystems {
  readonly #byDevice = new Map<bigint, Promise<boolean>>();
  readonly #isNetwork: (path: string) => Promise<boolean>;

  constructor(isNetwork: (path: string) => Promise<boolean> = isNetworkPath) {
    this.#isNetwork = isNetwork;
  }

  /** Asked once for every device that is met. */
  isLocal(device: bigint, path: string): Promise<boolean> {
    let network = this.#byDevice.get(device);
    if (network === undefined) {
      network = this.#isNetwork(path);
      this.#byDevice.set(device, network);
    }
    return network.then((answer) => !answer);
  }
}

async function isNetworkPath(path: string): Promise<boolean> {
  try {
    const { type } = await statfs(path);
    return NETWORK_TYPES.has(type >>> 0);
  } catch {
    // Not known means not trusted: the file is read.
    return true;
  }
}
