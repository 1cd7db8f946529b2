// The settings of the way between clients and the application behind: where it is, how much at once, how long.
import * as kind from './kinds.ts'
import { optional, type Row, required } from './row.ts'

export const UPSTREAM_ROWS = {
  UPSTREAM: optional({
    reloads: true,
    ...kind.upstream,
    sentence: 'The application behind the gateway. Without it Menshen serves its own small home page.',
  }),
  UPSTREAM_HOST_HEADER: required({
    reloads: true,
    ...kind.oneOf(['upstream', 'browser'], 'browser'),
    default: 'upstream',
    sentence:
      'Which `Host` the application sees: its own, or the one that the browser sent ([when to change it](behind-a-proxy.md#what-the-application-thinks-its-address-is)).',
  }),
  UPSTREAM_CA_FILE: optional({
    reloads: true,
    ...kind.readableFile,
    sentence: 'A certificate authority for https applications.',
  }),
  UPSTREAM_CONNECTIONS: required({
    reloads: true,
    ...kind.wholeNumber(1, 100_000, 'a number of connections'),
    default: '256',
    sentence:
      'How many ordinary requests of a process an application works on at once. One user may have them all; while somebody holds many, up to a quarter more are there for users who hold few.',
  }),
  UPSTREAM_QUEUE: required({
    reloads: true,
    ...kind.wholeNumber(0, 100_000, 'a number of requests'),
    default: '1024',
    sentence:
      'How many more requests wait for an application that is busy; others get 503 at once. The users are served in turn, and when all places are taken, whoever has most of them loses one.',
  }),
  UPSTREAM_QUEUE_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(100, 600_000, 'a number of milliseconds'),
    default: '5000',
    sentence: 'How long a request waits for an application that is busy, before it gets 503.',
  }),
  UPSTREAM_STREAMS: required({
    reloads: true,
    ...kind.wholeNumber(1, 100_000, 'a number of streams'),
    default: '4096',
    sentence:
      'How many WebSockets, event streams, and answers or bodies that wait for their client a process has with an application, on top of `UPSTREAM_CONNECTIONS`; for one more, whoever holds most of them loses one.',
  }),
  UPSTREAM_CONNECT_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(100, 600_000, 'a number of milliseconds'),
    default: '5000',
    sentence: 'How long connecting to the application may take.',
  }),
  UPSTREAM_HEADERS_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(100, 86_400_000, 'a number of milliseconds'),
    default: '60000',
    sentence: 'How long the application may take to begin its answer.',
  }),
  UPSTREAM_IDLE_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(0, 86_400_000, 'a number of milliseconds'),
    default: '300000',
    sentence: 'How long an answer may pause before it counts as broken; 0 for as long as it likes.',
  }),
  CLIENT_TIMEOUT_MS: required({
    ...kind.wholeNumber(100, 86_400_000, 'a number of milliseconds'),
    default: '30000',
    sentence:
      'A client is cut off that for this long takes nothing of its answer or sends nothing of its body, or needs longer for a body to an address of our own.',
  }),
} satisfies Record<string, Row<unknown>>
