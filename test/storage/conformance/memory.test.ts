import { storageConformance } from './all-suites.ts';
import { memorySubject } from './memory-subject.ts';

storageConformance('memory', memorySubject);
