import { inject } from 'vitest';
import { storageConformance } from './all-suites.ts';
import { azureSubject } from './azure-subject.ts';

storageConformance('Azure adapter on Azurite', () => azureSubject(inject('azuriteConnectionString')));
