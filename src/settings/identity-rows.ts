// The settings of what an application is told about its users, and of what reaches it of a browser's headers.
import { headerNames } from './header-names.ts'
import * as kind from './kinds.ts'
import { optional, type Row, required } from './row.ts'

/** Ours also where nothing is signed: a client must not fill the gap. */
export const ASSERTION_HEADER = 'x-menshen-assertion'

export const IDENTITY_ROWS = {
  IDENTITY_USER: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-user',
    sentence: 'The header that tells the application the username.',
    sentenceZh: '把用户名传给后端应用的请求头。',
  }),
  IDENTITY_EMAIL: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-email',
    sentence: 'The header with the e-mail address.',
    sentenceZh: '传递邮箱的请求头。',
  }),
  IDENTITY_NAME: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-preferred-username',
    sentence: 'The header with the nickname, in percent-encoded UTF-8.',
    sentenceZh: '传递昵称的请求头，UTF-8 百分号编码。',
  }),
  IDENTITY_ROLE: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-groups',
    sentence: 'The header with the role.',
    sentenceZh: '传递角色的请求头。',
  }),
  IDENTITY_ASSERTION: required({
    reloads: true,
    ...kind.headerNameOrNone,
    default: ASSERTION_HEADER,
    sentence:
      'The header with a short-lived signed JWT; its public keys are at `/_menshen/jwks.json`. With `none` nothing is signed, for applications that do not look at it.',
    sentenceZh: '传递短期签名 JWT 的请求头，公钥在 `/_menshen/jwks.json`。设为 `none` 则不签名，适合不检查它的应用。',
  }),
  ASSERTION_AUDIENCE: optional({
    reloads: true,
    ...kind.audience,
    defaultNote: 'the address in `UPSTREAM`; with forward-auth `CLIENT_ID`',
    sentence: 'The audience of the signed JWT for the application behind. `upstreams` name their own.',
    sentenceZh: '给后端应用的签名 JWT 的受众（aud）。`upstreams` 各有自己的设置。',
  }),
  FORWARD_ACCESS_TOKEN: required({
    reloads: true,
    ...kind.yesOrNo,
    default: 'false',
    sentence: 'Also gives the application the access token, as `Authorization: Bearer`.',
    sentenceZh: '同时以 `Authorization: Bearer` 把访问令牌传给后端应用。',
  }),
  DROP_HEADERS: optional({
    reloads: true,
    ...headerNames,
    sentence:
      'Headers of the browser that the application must not see, besides those of [the list](behind-a-proxy.md#what-does-not-reach-the-application). Stronger than `KEEP_HEADERS`.',
    sentenceZh:
      '除[列表](behind-a-proxy.md#what-does-not-reach-the-application)之外，不能传给后端应用的浏览器请求头。优先于 `KEEP_HEADERS`。',
  }),
  KEEP_HEADERS: optional({
    reloads: true,
    ...headerNames,
    example: 'x-user-id,x-http-method-override',
    sentence: 'Headers of that list that the application may see. Whatever it believes of them, any client can write.',
    sentenceZh: '列表中允许传给后端应用的请求头。请注意任何客户端都可以伪造它们的内容。',
  }),
  BEARER_AUDIENCE: optional({
    reloads: true,
    ...kind.audiences,
    defaultNote: 'the client’s identifier and `BASE_URL`',
    sentence:
      'Whom an access token has to be for (`aud`) that a machine brings where a rule says [`bearer`](rules.md#machines). A rule’s `audience` takes its place.',
    sentenceZh:
      '规则中写有 [`bearer`](rules.md#machines) 的路径，机器带来的访问令牌的受众（`aud`）必须是它。规则自己的 `audience` 优先。',
  }),
} satisfies Record<string, Row<unknown>>
