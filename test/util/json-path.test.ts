// Places in answers, and numbers that lose nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readJson } from '../../src/provider/fetch.ts'
import { getPath, namesFrom, notAccepted, notAmong, shapeOf, textFrom } from '../../src/util/json-path.ts'

test('a path leads through names, lists, and names that contain dots', () => {
  const answer = {
    dept: { id: 7, name: '财务部' },
    'https://example.com/roles': ['a'],
    'example.com': { roles: ['b'] },
    posts: [{ name: 'x', tags: ['1', '2'] }, { name: 'y' }, 'z'],
    resource_access: { 'my.client': { roles: ['r'] } },
    empty: null,
  }
  for (const [place, found] of [
    ['dept.name', '财务部'],
    ['https://example.com/roles', ['a']],
    ['example.com.roles', ['b']],
    ['posts.name', ['x', 'y']],
    ['posts.tags', ['1', '2']],
    ['resource_access.my.client.roles', ['r']],
    ['empty', null],
    ['empty.more', undefined],
    ['dept.name.more', undefined],
    ['posts.nothing', undefined],
    ['.dept', undefined],
    ['dept.', undefined],
    ['', undefined],
  ] as const)
    assert.deepEqual(getPath(answer, place), found, place)
})

test('the name "only" leads to the element of a list that has exactly one', () => {
  assert.equal(getPath({ list: ['a'] }, 'list.only'), 'a')
  for (const list of [[], ['a', 'b'], 'a', null, { length: 1 }]) assert.equal(getPath({ list }, 'list.only'), undefined)
})

test('a path does not lead to inherited properties', () => {
  for (const place of ['__proto__', 'constructor', 'toString', '__proto__.toString', 'constructor.name', 'length'])
    assert.equal(getPath({}, place), undefined, place)
  const poisoned = readJson('{"__proto__":{"username":"admin"},"a":{"constructor":{"name":"evil"}}}')
  assert.equal(getPath(poisoned, 'username'), undefined)
  assert.equal(getPath(poisoned, 'a.constructor.name'), 'evil')
  assert.equal(({} as { username?: string }).username, undefined)
})

test('a path does not lead through lists in lists, however deep', () => {
  let deep: unknown = { sub: 's' }
  for (let n = 0; n < 100_000; n++) deep = [deep]
  assert.equal(getPath(deep, 'sub'), undefined)
  assert.equal(getPath({ deep }, 'deep.sub'), undefined)
  assert.equal(shapeOf(deep), 'list of list of list')
  assert.equal(readJson('['.repeat(100_000) + ']'.repeat(100_000)), undefined)
})

test('a number becomes text without losing a digit', () => {
  const text = (json: string) => textFrom([readJson(`{"id":${json}}`)], ['id'])
  for (const digits of ['0', '-7', '583231', '9007199254740991', '9007199254740993', '12345678901234567890'])
    assert.equal(text(digits), digits)
  assert.equal(text('1.5'), '1.5')
  for (const nothing of ['null', 'true', '{}', '[]', '""', '1e400']) assert.equal(text(nothing), '', nothing)
})

test('the text comes from the first path that any response has, and the parts of a pair from one response', () => {
  const userinfo = { sub: 's', email: '', tid: 't' }
  const idToken = { sub: 's', preferred_username: 'lisi', email: 'l@e.cn', tid: 't', oid: 'o' }
  assert.equal(textFrom([userinfo, idToken], ['preferred_username', 'email', 'sub']), 'lisi')
  assert.equal(textFrom([userinfo, idToken], ['email']), 'l@e.cn')
  assert.equal(textFrom([userinfo, idToken], [['tid', 'oid'], 'sub']), 't-o')
  assert.equal(textFrom([{ tid: 't' }, { oid: 'o' }], [['tid', 'oid']]), '')
})

test('groups are a list, keys, or one name, for each path from the first response that has it', () => {
  const answers = [
    { groups: ['a', 'b', 'a'], role: 'r' },
    { groups: ['revoked'], roles: { x: {}, y: {} } },
  ]
  assert.deepEqual(namesFrom(answers, ['groups', 'role', 'roles', 'nothing']), ['a', 'b', 'r', 'x', 'y'])
  assert.deepEqual(namesFrom([{ groups: [1, null, { a: 1 }, '', 'z'] }], ['groups']), ['1', 'z'])
})

test('a key whose value is false or null is not a group of the user', () => {
  const roles = { admins: false, owners: null, staff: true, editors: {}, '1': 'org' }
  assert.deepEqual(namesFrom([{ roles }], ['roles']), ['1', 'staff', 'editors'])
})

test('a success field must equal an accepted value exactly, and one matching value of a list field is enough', () => {
  assert.equal(notAccepted({ success: true }, { success: [true] }), undefined)
  for (const success of ['true', 1, [true], null, {}, undefined])
    assert.equal(notAccepted({ success }, { success: [true] }), 'success')
  assert.equal(notAccepted({}, { code: [0, null] }), undefined)
  assert.equal(notAccepted({ code: '0' }, { code: [0] }), 'code')
  assert.equal(notAmong({ groups: ['a', 'b'] }, { groups: ['b'] }), undefined)
  assert.equal(notAmong({ groups: ['a', 'b'], hd: 'x' }, { groups: ['b'], hd: ['y'] }), 'hd')
  assert.equal(notAmong({ groups: [] }, { groups: ['b'] }), 'groups')
})

test('a shape has names and types, but no values and no control characters', () => {
  const secret = 'lisi'
  const shape = shapeOf({
    a: secret,
    b: 1,
    c: [{ d: secret }],
    e: { f: { g: secret } },
    h: '',
    i: null,
    '\u001b[31m\n': 1,
  })
  assert.equal(
    shape,
    '{ a: string, b: number, c: list of object, e: { f: object }, h: empty text, i: null, ?[31m?: number }',
  )
  assert.equal(
    Object.keys(shapeOf(Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, n]))).split(',')).length,
    30,
  )
})
