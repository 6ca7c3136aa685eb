import { describe, expect, it } from 'vitest';
import { isPointerName, parsePointerFile } from '../../src/repository/pointer-file.ts';
import { vectors } from '../support/bytes.ts';

describe('pointer files', () => {
  it.each(vectors('pointers-and-paths.json').pointers as { content: string; hash: string | null }[])(
    '$content',
    ({ content, hash }) => {
      expect(parsePointerFile(content) ?? null).toBe(hash);
    },
  );

  it('are known by their suffix, in any case', () => {
    expect(['a.jpg.pointer.arius', 'a.POINTER.Arius', '.pointer.arius'].every(isPointerName)).toBe(true);
    expect(['a.jpg', 'pointer.arius', 'a.pointer.arius.jpg', 'a.pointer_arius'].some(isPointerName)).toBe(false);
  });

  it.each(['[1]', '{"BinaryHash":7}', 'null', '{"BinaryHash":"ab"}}'])('%s holds no hash', (content) => {
    expect(parsePointerFile(content)).toBeUndefined();
  });
});
