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
  }),
  IDENTITY_EMAIL: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-email',
    sentence: 'The header with the e-mail address.',
  }),
  IDENTITY_NAME: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-preferred-username',
    sentence: 'The header with the nickname, in percent-encoded UTF-8.',
  }),
  IDENTITY_ROLE: required({
    reloads: true,
    ...kind.headerName,
    default: 'x-forwarded-groups',
    sentence: 'The header with the role.',
  }),
  IDENTITY_ASSERTION: required({
    reloads: true,
    ...kind.headerNameOrNone,
    default: ASSERTION_HEADER,
    sentence:
      'The header with a short-lived signed JWT; its public keys are at `/_menshen/jwks.json`. With `none` nothing is signed, for applications that do not look at it.',
  }),
  ASSERTION_AUDIENCE: optional({
    reloads: true,
    ...kind.audience,
    defaultNote: 'the address in `UPSTREAM`; with forward-auth `CLIENT_ID`',
    sentence: 'The audience of the signed JWT for the application behind. `upstreams` name their own.',
  }),
  FORWARD_ACCESS_TOKEN: required({
    reloads: true,
    ...kind.yesOrNo,
    default: 'false',
    sentence: 'Also gives the application the access token, as `Authorization: Bearer`.',
  }),
  DROP_HEADERS: optional({
    reloads: true,
    ...headerNames,
    sentence:
      'Headers of the browser that the application must not see, besides those of [the list](behind-a-proxy.md#what-does-not-reach-the-application). Stronger than `KEEP_HEADERS`.',
  }),
  KEEP_HEADERS: optional({
    reloads: true,
    ...headerNames,
    example: 'x-user-id,x-http-method-override',
    sentence: 'Headers of that list that the application may see. Whatever it believes of them, any client can write.',
  }),
  BEARER_AUDIENCE: optional({
    reloads: true,
    ...kind.audiences,
    defaultNote: 'the client’s identifier and `BASE_URL`',
    sentence:
      'Whom an access token has to be for (`aud`) that a machine brings where a rule says [`bearer`](rules.md#machines). A rule’s `audience` takes its place.',
  }),
} satisfies Record<string, Row<unknown>>
