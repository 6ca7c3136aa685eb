/**
 * The app's host.json and settings. A setting `AzureFunctionsJobHost__a__b` overrides host.json's `a.b`, as in Azure.
 * Unknown members are ignored, wrong values of known ones are refused.
 */

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { FUNCTION_TIMEOUT_DEFAULT_MS, QUEUE_BATCH_MESSAGES_MAX, TIMEOUT_MS_MAX } from '../../limits.ts';
import type { VersionMatchStrategy } from './durable/version-match.ts';
import { parseTimeSpan } from './time-span.ts';

const OVERRIDE_PREFIX = 'AzureFunctionsJobHost__';

export interface QueueConfig {
  readonly batchSize: number;
  readonly newBatchThreshold: number;
  readonly maxPollingIntervalMs: number;
  readonly maxDequeueCount: number;
  readonly visibilityTimeoutMs: number;
  readonly base64: boolean;
}

export interface DurableConfig {
  readonly hubName: string;
  readonly maxConcurrentActivityFunctions: number;
  readonly maxConcurrentOrchestratorFunctions: number;
  readonly defaultVersion: string;
  readonly versionMatchStrategy: VersionMatchStrategy;
  readonly failOnVersionMismatch: boolean;
}

export interface HostConfig {
  readonly routePrefix: string;
  readonly functionTimeoutMs: number;
  readonly logLevel: string;
  readonly queues: QueueConfig;
  readonly durable: DurableConfig;
}

/** host.json or a setting has a value the host cannot use; the app does not start. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

export function readHostConfig(appDirectory: string, settings: Readonly<Record<string, string>>): HostConfig {
  const read = reader(hostJson(appDirectory), settings);
  const batchSize = read.integer('extensions.queues.batchSize', 16, 1, QUEUE_BATCH_MESSAGES_MAX);
  return {
    routePrefix: read.text('extensions.http.routePrefix', 'api').replace(/^\/+|\/+$/g, ''),
    functionTimeoutMs: Math.min(read.span('functionTimeout', FUNCTION_TIMEOUT_DEFAULT_MS), TIMEOUT_MS_MAX),
    logLevel: read.text('logging.logLevel.default', 'information').toLowerCase(),
    queues: {
      batchSize,
      newBatchThreshold: read.integer('extensions.queues.newBatchThreshold', Math.trunc(batchSize / 2), 0, 1000),
      maxPollingIntervalMs: read.span('extensions.queues.maxPollingInterval', 60_000),
      maxDequeueCount: read.integer('extensions.queues.maxDequeueCount', 5, 1, 100),
      visibilityTimeoutMs: read.span('extensions.queues.visibilityTimeout', 0),
      base64: read.choice('extensions.queues.messageEncoding', ['base64', 'none']) === 'base64',
    },
    durable: durableConfig(read, settings),
  };
}

function durableConfig(read: Reader, settings: Readonly<Record<string, string>>): DurableConfig {
  const path = (name: string): string => `extensions.durableTask.${name}`;
  const limit = (name: string): number => read.integer(path(name), 10 * availableParallelism(), 1, 10_000);
  return {
    hubName: read.text(path('hubName'), settings.WEBSITE_SITE_NAME ?? 'TestHubName'),
    maxConcurrentActivityFunctions: limit('maxConcurrentActivityFunctions'),
    maxConcurrentOrchestratorFunctions: limit('maxConcurrentOrchestratorFunctions'),
    defaultVersion: read.text(path('defaultVersion'), ''),
    versionMatchStrategy: read.choice(path('versionMatchStrategy'), ['currentorolder', 'strict', 'none']),
    failOnVersionMismatch: read.choice(path('versionFailureStrategy'), ['reject', 'fail']) === 'fail',
  };
}

/** `%NAME%` is the value of the setting NAME, in binding properties and in host.json. */
export function replaceSettings(text: string, settings: Readonly<Record<string, string | undefined>>): string {
  return text.replace(/%([^%]+)%/g, (_, name: string) => {
    const value = settings[name];
    if (value === undefined) throw new SettingsError(`"%${name}%" is used but there is no setting ${name}.`);
    return value;
  });
}

function hostJson(appDirectory: string): unknown {
  try {
    return JSON.parse(readFileSync(join(appDirectory, 'host.json'), 'utf8'));
  } catch (error) {
    throw new SettingsError(`host.json of ${appDirectory} cannot be read: ${String(error)}`);
  }
}

interface Reader {
  text(path: string, fallback: string): string;
  integer(path: string, fallback: number, min: number, max: number): number;
  span(path: string, fallbackMs: number): number;
  /** In any case; the first is the default. */
  choice<T extends string>(path: string, choices: readonly [T, ...T[]]): T;
}

function reader(json: unknown, settings: Readonly<Record<string, string>>): Reader {
  const raw = (path: string): unknown => {
    const override = settings[OVERRIDE_PREFIX + path.replaceAll('.', '__')];
    if (override !== undefined) return override;
    let value = json;
    for (const member of path.split('.')) value = (value as Record<string, unknown> | null | undefined)?.[member];
    return value;
  };
  return {
    text: (path, fallback): string => {
      const value = raw(path) ?? fallback;
      if (typeof value !== 'string') throw new SettingsError(`host.json: ${path} must be a text`);
      return replaceSettings(value, settings);
    },
    choice: (path, choices) => {
      const value = String(raw(path) ?? choices[0]).toLowerCase();
      const found = choices.find((choice) => choice === value);
      if (found === undefined) throw new SettingsError(`host.json: ${path} must be one of ${choices.join(', ')}`);
      return found;
    },
    integer: (path, fallback, min, max): number => {
      const value = Number(raw(path) ?? fallback);
      if (Number.isInteger(value) && value >= min && value <= max) return value;
      throw new SettingsError(`host.json: ${path} must be a whole number from ${min} to ${max}`);
    },
    span: (path, fallbackMs): number => {
      const value = raw(path);
      if (value === undefined || value === null) return fallbackMs;
      if (value === '-1') return Number.POSITIVE_INFINITY;
      const parsed = typeof value === 'string' ? parseTimeSpan(value) : undefined;
      if (parsed !== undefined) return parsed;
      throw new SettingsError(`host.json: ${path} must be a time like "00:00:30"`);
    },
  };
}
