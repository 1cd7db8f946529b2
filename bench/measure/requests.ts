// The bytes of the requests that the benchmarks send: what a browser sends, and what nginx makes of it when it asks about
// one (auth_request). One file holds them all, one after the other and all of the same length.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../servers/processes.ts'

export interface Requests {
  readonly file: string
  readonly length: number
  readonly count: number
}

export interface Shape {
  readonly url: string
  /** The Host, if it is not that of the address. */
  readonly host?: string
  /** What nginx was asked for, if nginx sends the request. */
  readonly original?: string
  /** Whether the connection ends with the answer. */
  readonly close?: boolean
  /** `Authorization` of a program, if a program sends the request. */
  readonly authorization?: string
  /** Whether it has only what the check needs: the cookie and four headers. */
  readonly lean?: boolean
}

/** The page that nginx is asked for: one of the configuration's rules applies to it. */
const ORIGINAL = '/reports/2026/third-quarter?page=2&sort=date'

const BROWSER = [
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
  'Accept-Language: zh-CN,zh;q=0.9,en;q=0.8',
  'Accept-Encoding: gzip, deflate, br, zstd',
  'Cache-Control: max-age=0',
  'sec-ch-ua: "Chromium";v="142", "Not_A Brand";v="99"',
  'sec-ch-ua-mobile: ?0',
  'sec-ch-ua-platform: "Linux"',
  'Upgrade-Insecure-Requests: 1',
  'Sec-Fetch-Site: same-origin',
  'Sec-Fetch-Mode: navigate',
  'Sec-Fetch-User: ?1',
  'Sec-Fetch-Dest: document',
]
let files = 0

/** The check that nginx sends for each request. */
export function checkAt(base: string): Shape {
  return { url: `${base}/_menshen/check`, original: ORIGINAL }
}

/** The same check, from a proxy that passes nothing else on. */
export function leanCheckAt(base: string): Shape {
  return { ...checkAt(base), lean: true }
}

export function requestsOf(shape: Shape, cookies: readonly string[]): Requests {
  const requests = cookies.map(cookie => requestOf(shape, cookie))
  const [{ length } = ''] = requests
  if (requests.some(request => request.length !== length)) throw new Error('requests of different lengths')
  const file = join(folder, `requests-${++files}`)
  writeFileSync(file, requests.join(''), 'latin1')
  return { file, length, count: requests.length }
}

/** Without our cookie it is a visitor's request. */
export function requestOf({ url, original, close = false, ...shape }: Shape, cookie?: string): string {
  const { pathname, search, host: ownHost } = new URL(url)
  const { host = ownHost, authorization, lean = false } = shape
  const first = [`GET ${pathname}${search} HTTP/1.1`, `Host: ${host}`]
  const asked = original ? [`X-Original-URI: ${original}`, 'X-Original-Method: GET'] : []
  if (lean) return `${[...first, ...asked, 'Accept: */*', `Cookie: ${cookie}`].join('\r\n')}\r\n\r\n`
  const cookies = ['_ga=GA1.1.1742066319.1763251200', 'locale=zh-CN', ...(cookie ? [cookie] : []), 'theme=dark']
  const lines = [
    ...first,
    ...(original ? ['X-Forwarded-For: 203.0.113.7'] : []),
    ...asked,
    ...(close ? ['Connection: close'] : original ? [] : ['Connection: keep-alive']),
    ...BROWSER,
    ...(authorization ? [`Authorization: ${authorization}`] : []),
    `Referer: http://${host}/`,
    `Cookie: ${cookies.join('; ')}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}
