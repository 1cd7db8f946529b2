// The settings of the way between clients and the application behind: where it is, how much at once, how long.
import * as kind from './kinds.ts'
import { optional, type Row, required } from './row.ts'

export const UPSTREAM_ROWS = {
  UPSTREAM: optional({
    reloads: true,
    ...kind.upstream,
    sentence: 'The application behind the gateway. Without it Menshen serves its own small home page.',
    sentenceZh: '门神保护的后端应用。没有设置时，门神显示自己的首页。',
  }),
  UPSTREAM_HOST_HEADER: required({
    reloads: true,
    ...kind.oneOf(['upstream', 'browser'], 'browser'),
    default: 'upstream',
    sentence:
      'Which `Host` the application sees: its own, or the one that the browser sent ([when to change it](behind-a-proxy.md#what-the-application-thinks-its-address-is)).',
    sentenceZh:
      '后端应用看到的 `Host`：它自己的地址，或浏览器发来的（[何时需要更改](behind-a-proxy.md#what-the-application-thinks-its-address-is)）。',
  }),
  UPSTREAM_CA_FILE: optional({
    reloads: true,
    ...kind.readableFile,
    sentence: 'A certificate authority for https applications.',
    sentenceZh: 'https 后端应用使用的 CA 证书。',
  }),
  UPSTREAM_CONNECTIONS: required({
    reloads: true,
    ...kind.wholeNumber(1, 100_000, 'a number of connections'),
    default: '256',
    sentence:
      'How many ordinary requests of a process an application works on at once. One user may have them all; while somebody holds many, up to a quarter more are there for users who hold few.',
    sentenceZh:
      '每个进程同时交给一个后端应用的普通请求数上限。一个用户可以全部占用；有人占用较多时，另有最多四分之一的名额留给占用较少的用户。',
  }),
  UPSTREAM_QUEUE: required({
    reloads: true,
    ...kind.wholeNumber(0, 100_000, 'a number of requests'),
    default: '1024',
    sentence:
      'How many more requests wait for an application that is busy; others get 503 at once. The users are served in turn, and when all places are taken, whoever has most of them loses one.',
    sentenceZh:
      '后端应用繁忙时最多有多少个请求排队，超出的立即返回 503。各用户轮流处理；队列已满时，排队最多的用户会失去一个位置。',
  }),
  UPSTREAM_QUEUE_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(100, 600_000, 'a number of milliseconds'),
    default: '5000',
    sentence: 'How long a request waits for an application that is busy, before it gets 503.',
    sentenceZh: '后端应用繁忙时，请求最多排队多久，之后返回 503。',
  }),
  UPSTREAM_STREAMS: required({
    reloads: true,
    ...kind.wholeNumber(1, 100_000, 'a number of streams'),
    default: '4096',
    sentence:
      'How many WebSockets, event streams, and answers or bodies that wait for their client a process has with an application, on top of `UPSTREAM_CONNECTIONS`; for one more, whoever holds most of them loses one.',
    sentenceZh:
      '除 `UPSTREAM_CONNECTIONS` 之外，每个进程与一个后端应用之间的 WebSocket、事件流以及等待客户端收发的请求数上限；超出时，占用最多的一方会断开一个。',
  }),
  UPSTREAM_CONNECT_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(100, 600_000, 'a number of milliseconds'),
    default: '5000',
    sentence: 'How long connecting to the application may take.',
    sentenceZh: '连接后端应用的时限。',
  }),
  UPSTREAM_HEADERS_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(100, 86_400_000, 'a number of milliseconds'),
    default: '60000',
    sentence: 'How long the application may take to begin its answer.',
    sentenceZh: '后端应用开始响应的时限。',
  }),
  UPSTREAM_IDLE_TIMEOUT_MS: required({
    reloads: true,
    ...kind.wholeNumber(0, 86_400_000, 'a number of milliseconds'),
    default: '300000',
    sentence: 'How long an answer may pause before it counts as broken; 0 for as long as it likes.',
    sentenceZh: '响应中断多久视为失败；0 表示不限。',
  }),
  CLIENT_TIMEOUT_MS: required({
    ...kind.wholeNumber(100, 86_400_000, 'a number of milliseconds'),
    default: '30000',
    sentence:
      'A client is cut off that for this long takes nothing of its answer or sends nothing of its body, or needs longer for a body to an address of our own.',
    sentenceZh: '客户端在这个时间内既不接收响应也不发送内容，或向门神自己的地址发送内容超过这个时间，连接会被断开。',
  }),
} satisfies Record<string, Row<unknown>>
