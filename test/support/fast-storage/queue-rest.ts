/** Enough of the Queue service's REST interface for Azure's library and queue triggers. */

import type { MemoryAccount } from '../../../src/storage/memory/memory-account.ts';
import type { QueueStore } from '../../../src/storage/memory/queue-store.ts';
import type { ReceivedMessage } from '../../../src/storage/ports.ts';
import { StorageRefusal } from '../../../src/storage/refusal.ts';
import {
  escapeXml,
  type RestAnswer,
  type RestRequest,
  refusalAnswer,
  unescapeXml,
  unsupported,
  xmlAnswer,
} from './rest.ts';

const INVISIBLE_SECONDS_DEFAULT = '30';
const WEEK_MS = 7 * 24 * 60 * 60_000;

/** Never throws a refusal: it answers it. */
export function handleQueue(account: MemoryAccount, request: RestRequest, body: string): RestAnswer {
  try {
    const [queue = '', messages, id] = request.path;
    if (messages === 'messages') {
      return handleMessages(account, account.queue(queue), request, id, body);
    }
    return handleQueues(account, queue, request);
  } catch (error) {
    if (error instanceof StorageRefusal) {
      return refusalAnswer(error, request.method);
    }
    throw error;
  }
}

function handleQueues(account: MemoryAccount, queue: string, request: RestRequest): RestAnswer {
  switch (request.method) {
    case 'PUT':
      return { status: account.createQueue(queue) ? 201 : 204 };
    case 'DELETE':
      account.deleteQueue(queue);
      return { status: 204 };
    case 'GET':
    case 'HEAD':
      return queue === ''
        ? listQueues(account, request.query.get('prefix') ?? '')
        : { status: 200, headers: { 'x-ms-approximate-messages-count': account.queue(queue).length } };
    default:
      throw unsupported(request);
  }
}

function listQueues(account: MemoryAccount, prefix: string): RestAnswer {
  const names = account.queueNames().filter((name) => name.startsWith(prefix));
  const queues = names.map((name) => `<Queue><Name>${name}</Name></Queue>`).join('');
  return xmlAnswer(200, `<EnumerationResults><Queues>${queues}</Queues><NextMarker/></EnumerationResults>`);
}

function handleMessages(
  account: MemoryAccount,
  queue: QueueStore,
  request: RestRequest,
  id: string | undefined,
  body: string,
): RestAnswer {
  const { query } = request;
  const receipt = query.get('popreceipt') ?? '';
  const invisibleSeconds = Number(query.get('visibilitytimeout') ?? INVISIBLE_SECONDS_DEFAULT);
  switch (request.method) {
    case 'POST': {
      const text = unescapeXml(/<MessageText>(.*?)<\/MessageText>/s.exec(body)?.[1] ?? '');
      const sentId = queue.send(text, Number(query.get('visibilitytimeout') ?? 0));
      return messagesAnswer(account, 201, [{ id: sentId, text, receipt: sentId, dequeueCount: 0 }], 0);
    }
    case 'GET': {
      const max = Number(query.get('numofmessages') ?? 1);
      return messagesAnswer(account, 200, queue.receive(max, invisibleSeconds), invisibleSeconds);
    }
    case 'PUT': {
      const headers = {
        'x-ms-popreceipt': queue.update(id ?? '', receipt, invisibleSeconds),
        'x-ms-time-next-visible': new Date(account.now().getTime() + invisibleSeconds * 1000).toUTCString(),
      };
      return { status: 204, headers };
    }
    case 'DELETE':
      if (id === undefined) {
        queue.clear();
      } else {
        queue.delete(id, receipt);
      }
      return { status: 204 };
    default:
      throw unsupported(request);
  }
}

function messagesAnswer(
  account: MemoryAccount,
  status: number,
  messages: readonly ReceivedMessage[],
  invisibleSeconds: number,
): RestAnswer {
  const nowMs = account.now().getTime();
  const at = (ms: number): string => new Date(ms).toUTCString();
  const items = messages.map(
    (message) =>
      `<QueueMessage><MessageId>${message.id}</MessageId><InsertionTime>${at(nowMs)}</InsertionTime>` +
      `<ExpirationTime>${at(nowMs + WEEK_MS)}</ExpirationTime><PopReceipt>${message.receipt}</PopReceipt>` +
      `<TimeNextVisible>${at(nowMs + invisibleSeconds * 1000)}</TimeNextVisible>` +
      `<DequeueCount>${message.dequeueCount}</DequeueCount>` +
      `<MessageText>${escapeXml(message.text)}</MessageText></QueueMessage>`,
  );
  return xmlAnswer(status, `<QueueMessagesList>${items.join('')}</QueueMessagesList>`);
}
