// What any event may carry where it is known. Never a ticket, a code or a token.
export const COMMON_FIELDS = {
  requestId: 'the request that it happened for; the same as `X-Request-Id` of its answer and 编号 on its page',
  user: 'the username',
  sub: "the provider's own identifier of the user",
  session: 'the first ten characters of the key of the session, which is a hash of its ticket',
  provider: 'the id of the provider in the configuration, `default` if there is only one',
  address: 'of the client, as far as `TRUSTED_PROXIES` are believed about it',
  userAgent: 'what the client calls itself, at most 256 characters',
  reason: 'why, as a code',
  worker: 'the number of the process, with `WORKERS`',
  error: 'the code of an error of ours; [troubleshooting.md](troubleshooting.md) explains them',
  detail: 'the sentence of that error',
  err: 'an error of somebody else: its type, message and stack',
} as const

export type CommonField = keyof typeof COMMON_FIELDS
