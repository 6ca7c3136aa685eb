/**
 * Every route of the HTTP API, in one table: the function app registers from it, the agent calls by it, `openapi.json`
 * is generated from it. Paths are relative to `/api`.
 */

import type { z } from 'zod';
import * as schemas from './schemas.ts';

export interface Route {
  readonly method: 'GET' | 'POST';
  /** ASP.NET route template without a leading slash. */
  readonly path: string;
  readonly summary: string;
  readonly request?: z.ZodType;
  readonly query?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly response: z.ZodType;
}

export const ROUTES = {
  openApi: {
    method: 'GET',
    path: 'openapi.json',
    summary: 'This API as an OpenAPI 3.1 document',
    status: 200,
    response: schemas.openApi,
  },
  health: { method: 'GET', path: 'health', summary: 'Liveness and version', status: 200, response: schemas.health },
  createRepository: {
    method: 'POST',
    path: 'repositories',
    summary: 'Create a repository',
    request: schemas.createRepositoryRequest,
    status: 201,
    response: schemas.repository,
  },
  listRepositories: {
    method: 'GET',
    path: 'repositories',
    summary: 'The repositories this service keeps',
    status: 200,
    response: schemas.repositoryList,
  },
  getRepository: {
    method: 'GET',
    path: 'repositories/{repository}',
    summary: 'One repository',
    status: 200,
    response: schemas.repository,
  },
  adoptRepository: {
    method: 'POST',
    path: 'repositories/{repository}/adopt',
    summary: 'Take over a container that another client wrote',
    request: schemas.adoptRepositoryRequest,
    status: 200,
    response: schemas.repository,
  },
  startRun: {
    method: 'POST',
    path: 'repositories/{repository}/runs',
    summary: 'Start an archive run; idempotent in runId',
    request: schemas.startRunRequest,
    status: 200,
    response: schemas.run,
  },
  getRun: {
    method: 'GET',
    path: 'repositories/{repository}/runs/{runId}',
    summary: 'One run',
    status: 200,
    response: schemas.run,
  },
  completeRun: {
    method: 'POST',
    path: 'repositories/{repository}/runs/{runId}/complete',
    summary: 'Flush, verify and publish; idempotent; poll the operation in Location',
    request: schemas.completeRunRequest,
    status: 202,
    response: schemas.operation,
  },
  lookup: {
    method: 'POST',
    path: 'repositories/{repository}/chunks/lookup',
    summary: 'Which of these content hashes are stored, and where',
    request: schemas.lookupRequest,
    status: 200,
    response: schemas.lookupResponse,
  },
  grants: {
    method: 'POST',
    path: 'repositories/{repository}/grants',
    summary: 'Signed URLs that create or read single blobs',
    request: schemas.grantRequest,
    status: 200,
    response: schemas.grantResponse,
  },
  stagingGrant: {
    method: 'POST',
    path: 'repositories/{repository}/staging-grants',
    summary: 'Where the blocks of a body above 256 MiB may be staged',
    request: schemas.stagingGrantRequest,
    status: 200,
    response: schemas.stagingGrantResponse,
  },
  commitChunk: {
    method: 'POST',
    path: 'repositories/{repository}/chunks/{hash}/commit',
    summary: 'Assemble a staged body into its chunk; poll the operation in Location',
    request: schemas.commitChunkRequest,
    status: 202,
    response: schemas.operation,
  },
  recordEntries: {
    method: 'POST',
    path: 'repositories/{repository}/entries',
    summary: 'Record large chunks that were uploaded or found present',
    request: schemas.entriesRequest,
    status: 200,
    response: schemas.entriesResponse,
  },
  recordMembers: {
    method: 'POST',
    path: 'repositories/{repository}/tars/{hash}/members',
    summary: 'Record the members of an uploaded tar: thin stubs, then entries',
    request: schemas.membersRequest,
    status: 200,
    response: schemas.membersResponse,
  },
  listSnapshots: {
    method: 'GET',
    path: 'repositories/{repository}/snapshots',
    summary: 'Snapshots, oldest first',
    query: { source: 'only those of this source', continuation: 'of the page before' },
    status: 200,
    response: schemas.snapshotList,
  },
  getSnapshot: {
    method: 'GET',
    path: 'repositories/{repository}/snapshots/{name}',
    summary: 'One snapshot',
    status: 200,
    response: schemas.snapshot,
  },
  getOperation: {
    method: 'GET',
    path: 'repositories/{repository}/operations/{operationId}',
    summary: 'State and progress of a long-running operation',
    status: 200,
    response: schemas.operation,
  },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof ROUTES;
