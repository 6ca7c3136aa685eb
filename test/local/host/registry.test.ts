import { describe, expect, it } from 'vitest';
import { FunctionRegistry } from '../../../src/local/host/registry.ts';

const metadata = { name: 'one', bindings: { t: { type: 'httpTrigger', direction: 'in' } } } as const;

describe('the registry', () => {
  it('answers an unknown hook with the RangeError that the library knows', () => {
    const registry = new FunctionRegistry();
    expect(() => registry.addHook('beforeAll', () => undefined)).toThrow(
      expect.objectContaining({ name: 'RangeError', isAzureFunctionsSystemError: true }),
    );
  });

  it('takes a name once, whatever its case and kind of trigger, and nothing after the start', () => {
    const registry = new FunctionRegistry();
    registry.register(metadata, () => undefined);
    const other = { name: 'ONE', bindings: { t: { type: 'activityTrigger', direction: 'in' } } } as const;
    expect(() => registry.register(other, () => undefined)).toThrow('exists already');
    registry.lock();
    expect(() => registry.register({ ...metadata, name: 'two' }, () => undefined)).toThrow('after the app had started');
  });
});
