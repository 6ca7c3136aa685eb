import { startFastStorageServer } from '../../support/fast-storage-server.ts';
import { storageConformance } from './all-suites.ts';
import { azureSubject } from './azure-subject.ts';

/** So that what other tests see of the fast server is what they would see of Azure. */
storageConformance('Azure adapter on the fast storage server', async () => {
  const server = await startFastStorageServer();
  const subject = await azureSubject(server.connectionString);
  return {
    ...subject,
    stop: async () => {
      await subject.stop();
      await server.stop();
    },
  };
});
