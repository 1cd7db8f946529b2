// Names and paths that others have chosen, as people see them.
import assert from 'node:assert/strict'
import test from 'node:test'
import { displayName, shortPath } from '../../src/pages/shown-text.ts'

test('an invisible nickname is replaced by the username', () => {
  const unseen = [
    '',
    ' ',
    '\t\n',
    '\u3000',
    '\u200b',
    '\u200d\ufeff',
    '\u202e',
    '\u0000\u0007',
    '\u3164',
    '\u2800',
    '\u00ad \u2060',
  ]
  for (const nickname of unseen)
    assert.equal(displayName({ nickname, username: 'ann' }), 'ann', JSON.stringify(nickname))
})

test('a nickname is shown without control characters, direction overrides and surrounding spaces', () => {
  const rows: [nickname: string, shown: string][] = [
    ['张三', '张三'],
    [' 张三\n', '张三'],
    ['\u202e三张', '三张'],
    ['a\u2067b\u0000c', 'abc'],
    ['👩\u200d💻', '👩\u200d💻'],
    ['علی\u200cرضا', 'علی\u200cرضا'],
  ]
  for (const [nickname, shown] of rows) assert.equal(displayName({ nickname, username: 'ann' }), shown)
})

test('a path is shown with decoded letters, without its query, and with at most 60 characters', () => {
  const rows: [address: string, shown: string][] = [
    ['/reports', '/reports'],
    ['/reports/2026?token=secret#x', '/reports/2026'],
    ['/%E6%8A%A5%E8%A1%A8/a%20b', '/报表/a%20b'],
    ['/%E2%80%AEtxt.exe', '/%E2%80%AEtxt.exe'],
    ['/%3Cscript%3E', '/%3Cscript%3E'],
    ['/%zz/%E6', '/%zz/%E6'],
    ['/a%2Fb', '/a%2Fb'],
    [`/${'x'.repeat(100)}`, `/${'x'.repeat(58)}…`],
    [`/${'%F0%A0%AE%B7'.repeat(100)}`, `/${'𠮷'.repeat(58)}…`],
  ]
  for (const [address, shown] of rows) assert.equal(shortPath(address), shown)
})
