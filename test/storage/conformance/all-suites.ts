import { appendConformance } from './append-suite.ts';
import { blobConformance } from './blob-suite.ts';
import { queueConformance } from './queue-suite.ts';
import type { SubjectFactory } from './subject.ts';
import { tableConformance } from './table-suite.ts';

/** The one suite that every adapter passes. */
export function storageConformance(adapter: string, createSubject: SubjectFactory): void {
  blobConformance(adapter, createSubject);
  appendConformance(adapter, createSubject);
  tableConformance(adapter, createSubject);
  queueConformance(adapter, createSubject);
}
