import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRedisAddress } from '../../../src/stores/redis/address.ts'

const GOOD = {
  'redis://127.0.0.1': { host: { host: '127.0.0.1', port: 6379 }, database: 0, tls: false },
  'redis://localhost:7000/': { host: { host: 'localhost', port: 7000 }, database: 0 },
  'redis://[::1]:7000/5': { host: { host: '::1', port: 7000 }, database: 5 },
  'redis://:secret@h': { password: 'secret', prefix: 'menshen' },
  'redis://h?prefix=acme': { prefix: 'acme' },
  'rediss+cluster://h?prefix=acme:sso&ca=/ca.crt': { prefix: 'acme:sso', ca: '/ca.crt' },
  'redis://user:p%40ss%2Fword@h/2': { username: 'user', password: 'p@ss/word', database: 2 },
  'rediss://user:a:b@h?ca=%2Fetc%2Fca.crt': { tls: true, ca: '/etc/ca.crt', password: 'a:b' },
  'redis+sentinel://:s@a,b:5000/main': {
    kind: 'sentinel',
    hosts: [
      { host: 'a', port: 26379 },
      { host: 'b', port: 5000 },
    ],
    primary: 'main',
    database: 0,
    password: 's',
  },
  'rediss+sentinel://:s@a:1,b/main/7?ca=%2Fca.crt': { kind: 'sentinel', tls: true, ca: '/ca.crt', database: 7 },
  'rediss+sentinel://a/main': { kind: 'sentinel', tls: true },
  'rediss+cluster://a:1,b?ca=/ca.crt': { kind: 'cluster', tls: true, ca: '/ca.crt' },
  'rediss+cluster://u:p@a/': { kind: 'cluster', tls: true, username: 'u' },
  'redis+sentinel://a:1/main/7': { primary: 'main', database: 7 },
  'redis+cluster://u:p@a:1,b': {
    kind: 'cluster',
    hosts: [
      { host: 'a', port: 1 },
      { host: 'b', port: 6379 },
    ],
    username: 'u',
    password: 'p',
  },
}

const BAD = [
  'redis://h?prefix=',
  'redis://h?prefix=a%7Bb%7D',
  'redis://h?prefix=a*',
  'redis://h?prefix=a&prefix=b',
  'redis://h?perfix=a',
  '',
  'memory:',
  'redis:',
  'redis://',
  'redis://user@h',
  'redis://:p@ss@h',
  'redis://:100%@h',
  'redis://h:0',
  'redis://h:70000',
  'redis://h:port',
  'redis://a,b',
  'redis://a,b:1/0',
  'redis://h/name',
  'redis://h/1/2',
  'redis://h?ca=/etc/ca.crt',
  'rediss://h?cert=x',
  'redis+sentinel://a:1',
  'redis+sentinel://a:1/main/name',
  'redis+cluster://a:1/0',
  'redis+cluster://a,,b',
  'rediss+cluster://a?cert=x',
  'redis+cluster://a?ca=/etc/ca.crt',
  'redis+sentinel://a/main?ca=/etc/ca.crt',
  'redis+tls://a',
  'redisss+cluster://a',
  ' redis://h',
]

for (const [address, expected] of Object.entries(GOOD)) {
  test(`${address} is a valid Redis address`, () => {
    assert.partialDeepStrictEqual(parseRedisAddress(address), expected)
  })
}

for (const address of BAD) {
  test(`"${address}" is not a valid Redis address`, () => {
    assert.throws(() => parseRedisAddress(address), { code: 'bad_settings' })
  })
}

test('neither the name of a Redis address nor an error about it contains the password', () => {
  assert.equal(parseRedisAddress('redis://user:secret@h:1/2').name, 'redis://h:1/2')
  assert.throws(
    () => parseRedisAddress('redis://user:secret@h:none'),
    error => !String(error).includes('secret'),
  )
})
