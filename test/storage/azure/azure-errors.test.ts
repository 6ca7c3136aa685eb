import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { answered, translateAzureError } from '../../../src/storage/azure/azure-errors.ts';
import { StorageRefusal, StorageUnanswered } from '../../../src/storage/refusal.ts';

const headers = (entries: Record<string, string>) => ({ headers: { get: (name: string) => entries[name] } });

describe('translateAzureError', () => {
  it.each([
    ['a blob request', { statusCode: 409, code: 'BlobAlreadyExists', details: { errorCode: 'BlobAlreadyExists' } }],
    ['a HEAD, which has no code of its own', { statusCode: 409, details: { errorCode: 'BlobAlreadyExists' } }],
    ['a table request', { statusCode: 409, details: { odataError: { code: 'BlobAlreadyExists' } } }],
    ['a table transaction', { statusCode: 409, code: 'BlobAlreadyExists' }],
  ])('finds the code of %s', (_what, error) => {
    expect(translateAzureError(error)).toMatchObject({ status: 409, code: 'BlobAlreadyExists' });
    expect(translateAzureError(error)).toBeInstanceOf(StorageRefusal);
  });

  it('finds which operation of a transaction failed', () => {
    const error = { statusCode: 412, code: 'UpdateConditionNotSatisfied', message: '17:The update condition …' };
    expect(translateAzureError(error)).toMatchObject({ failedIndex: 17 });
    expect(translateAzureError({ ...error, message: 'Something else: 17' })).toMatchObject({ failedIndex: undefined });
  });

  it.each([
    ['a lost connection', { name: 'RestError', code: 'ECONNRESET', message: 'socket hang up' }],
    ['a time-out', { name: 'AbortError', message: 'The operation was aborted.' }],
    ['a server error', { statusCode: 500, code: 'InternalError' }],
    ['a busy server', { statusCode: 503, code: 'ServerBusy' }],
    ['throttling', { statusCode: 429 }],
    ['a server time-out', { statusCode: 408 }],
    ['an answer that was cut short', { statusCode: 200, code: 'PARSE_ERROR' }],
  ])('does not know whether a request was applied after %s', (_what, error) => {
    expect(translateAzureError(error)).toBeInstanceOf(StorageUnanswered);
  });

  it('says how long to wait, when the service does', () => {
    const busy = { statusCode: 503, response: headers({ 'retry-after': '3' }) };
    expect(translateAzureError(busy)).toMatchObject({ retryAfterMs: 3000 });
    expect(translateAzureError({ statusCode: 503, response: headers({}) })).toMatchObject({ retryAfterMs: undefined });
  });

  it('makes a missing token a refusal: waiting does not bring it', () => {
    const error = Object.assign(new Error('no managed identity here'), { name: 'CredentialUnavailableError' });
    expect(translateAzureError(error)).toMatchObject({ status: 401, code: 'NoToken', cause: error });
  });

  it('returns a defect as it is', () => {
    const defect = new TypeError('x is not a function');
    expect(translateAzureError(defect)).toBe(defect);
    expect(translateAzureError('text')).toBe('text');
  });

  it('keeps nothing of the request, whose address is signed, but its id', () => {
    const request = { url: 'https://account/container?sig=SECRET', headers: { authorization: 'SECRET' } };
    const response = { ...headers({ 'x-ms-request-id': 'abc-1' }), request };
    for (const statusCode of [403, 503]) {
      const translated = translateAzureError({ statusCode, code: 'AnyCode', message: 'any', request, response });
      expect(inspect(translated, { depth: 10, showHidden: true })).not.toContain('SECRET');
    }
    expect(translateAzureError({ statusCode: 403, code: 'AnyCode', response })).toMatchObject({
      message: '403 AnyCode (request abc-1)',
    });
  });
});

describe('answered', () => {
  it('hands the answer on, and translates what is thrown', async () => {
    expect(await answered(async () => 'answer')).toBe('answer');
    const refused = answered(async () => {
      throw Object.assign(new Error('refused'), { statusCode: 404, code: 'BlobNotFound' });
    });
    await expect(refused).rejects.toMatchObject({ status: 404, code: 'BlobNotFound' });
  });
});
