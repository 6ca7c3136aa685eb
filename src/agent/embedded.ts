/**
 * What the agent asks of an embedded service. The agent knows only this: who provides it (`src/local`) imports the agent's
 * types, never the other way, so that an agent beside a deployed service carries none of it.
 */

import type { AriusError } from '../errors.ts';

export interface EmbeddedServiceOptions {
  /** Where the service keeps its state; created when missing. */
  readonly stateDirectory: string;
  /** Passphrases of sealed repositories, by repository name. */
  readonly passphrases: Readonly<Record<string, string>>;
  onProgress(message: string): void;
  /** `serve`: other commands share this service while it runs. Otherwise they wait for it to end. */
  readonly keepRunning: boolean;
  /** Ends the waiting for another command, and a start under way. */
  readonly signal: AbortSignal;
}

export interface EmbeddedServiceLauncher {
  start(options: EmbeddedServiceOptions): Promise<EmbeddedService>;
}

export interface EmbeddedService {
  /** Without a path, e.g. `http://127.0.0.1:50321`. */
  readonly url: string;
  readonly functionKey: string;
  readonly portalUrl: string;
  readonly storageConnectionString: string;
  readonly stateDirectory: string;
  /** Another process owns it: `stop` ends nothing, so what was written is only surely on disk after `saved`. */
  readonly shared: boolean;
  /** Resolves when the service ended though nobody stopped it. */
  readonly failed: Promise<AriusError>;
  /** Resolves when everything written before the call is on disk. */
  saved(): Promise<void>;
  /** Ends the service with everything saved; nothing when another process owns it. */
  stop(): Promise<void>;
}
