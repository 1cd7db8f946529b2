// What the log looks like: lines for people on a terminal, JSON everywhere else, and safe to look at in both.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { createLog, createPaint, isPretty, jsonTo, prettyLine, prettyTo, wantsColours } from '../../src/cli/terminal.ts'
import { createEventLog } from '../../src/log.ts'
import { freePort } from '../kit/free-port.ts'
import { requireUtilLinux } from '../kit/requirements.ts'
import { tempFolder } from '../kit/temp.ts'

const MAIN = fileURLToPath(new URL('../../bin/menshen.js', import.meta.url))
const HOSTILE = 'li\u001b[2J\u009b31m\u202e\u2028\r\nsi\u007f\u001b]0;title\u0007'
const SAFE = /^[^\p{Cc}\p{Bidi_Control}\u2028\u2029]*$/u

function written(to: typeof jsonTo | typeof prettyTo, fields: object, colours = false): string {
  const lines: string[] = []
  const log = createLog({ LOG_LEVEL: 'info' }, to({ write: line => void lines.push(line) }, colours))
  const events = createEventLog(log, () => 0)
  events.report('sign_in', fields)
  events.close()
  return lines.join('')
}

suite('the human-readable log format', () => {
  test('a human-readable log line has the local time, the level, the message, the event and the other fields', t => {
    const { TZ } = process.env
    t.after(() => {
      if (TZ === undefined) delete process.env.TZ
      else process.env.TZ = TZ
    })
    process.env.TZ = 'Asia/Shanghai'
    const line = JSON.stringify({
      level: 'warn',
      time: '2026-03-01T23:59:58.123Z',
      event: 'not_ready',
      user: '张三',
      detail: 'two words',
      count: 3,
      upstreams: { '/': 'http://127.0.0.1:9' },
      msg: 'it is late',
    })
    const fields = 'not_ready user=张三 detail="two words" count=3 upstreams={"/":"http://127.0.0.1:9"}'
    assert.equal(prettyLine(line, createPaint(false)), `2026-03-02 07:59:58 warn  it is late  ${fields}\n`)
    assert.equal(
      prettyLine(line, createPaint(true)),
      `\u001b[2m2026-03-02 07:59:58\u001b[22m \u001b[33mwarn \u001b[39m it is late  \u001b[2m${fields}\u001b[22m\n`,
    )
  })

  test('a human-readable error line is followed by its stack; a line that is not JSON only loses its control characters', () => {
    const err = { type: 'Error', message: 'lost', stack: 'Error: lost\n    at place (file.ts:1:1)' }
    const line = { level: 'error', time: '2026-03-01T00:00:00Z', msg: 'broken', err }
    const lines = prettyLine(JSON.stringify(line), createPaint(false)).split('\n')
    assert.deepEqual(lines.slice(1), ['    Error: lost', '    at place (file.ts:1:1)', ''])
    assert.equal(prettyLine('no \u001b[31mJSON\n', createPaint(false)), 'no �[31mJSON\n')
  })
})

test('control characters in logged values cannot move the cursor or start a new line, in either log format', () => {
  const fields = { user: HOSTILE, userAgent: HOSTILE, [HOSTILE]: [HOSTILE], deep: { [HOSTILE]: HOSTILE } }
  const err = new Error(HOSTILE)
  for (const to of [jsonTo, prettyTo]) {
    const [line = '', ...rest] = written(to, fields).split('\n')
    assert.match(line, SAFE)
    assert.deepEqual(rest, [''])
    for (const part of written(to, { err }).split('\n')) assert.match(part, SAFE)
  }
  const { user, deep } = JSON.parse(written(jsonTo, fields))
  assert.deepEqual({ user, deep }, { user: fields.user, deep: fields.deep }, 'a program reads what was written')
  // Colours are our own, and stand around what is safe.
  const coloured = written(prettyTo, fields, true)
  assert.notEqual(coloured, written(prettyTo, fields))
  assert.match(stripVTControlCharacters(coloured).trimEnd(), SAFE)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours, and nothing else that begins like them
  assert.doesNotMatch(coloured.replaceAll(/\x1b\[\d\d?m/g, ''), /\x1b/)
})

test('LOG_FORMAT=auto is human-readable only on a terminal; colours depend on the terminal, NO_COLOR and FORCE_COLOR', () => {
  const level = { LOG_LEVEL: 'info' } as const
  const rows = (['auto', 'json', 'pretty'] as const).map(LOG_FORMAT =>
    [true, false].map(isTerminal => isPretty({ ...level, LOG_FORMAT }, isTerminal)),
  )
  assert.deepEqual(rows, [
    [true, false],
    [false, false],
    [true, true],
  ])
  const wanted = (env: Record<string, string>) => [wantsColours(env, true), wantsColours(env, false)]
  assert.deepEqual(wanted({}), [true, false])
  assert.deepEqual(wanted({ NO_COLOR: '1' }), [false, false])
  assert.deepEqual(wanted({ NO_COLOR: '' }), [true, false])
  assert.deepEqual(wanted({ TERM: 'dumb' }), [false, false])
  assert.deepEqual(wanted({ FORCE_COLOR: '1', NO_COLOR: '1' }), [true, true])
  assert.deepEqual(wanted({ FORCE_COLOR: '0' }), [false, false])
})

test('on a terminal, all workers write human-readable lines, and the start prints a welcome message', async t => {
  const [port, provider] = [await freePort(), await freePort()]
  const { PATH, HOME } = process.env
  const terminal = spawn(requireUtilLinux('script'), ['-qec', `exec ${process.execPath} ${MAIN}`, '/dev/null'], {
    cwd: tempFolder(t),
    env: {
      PATH,
      HOME,
      TERM: 'xterm',
      PORT: `${port}`,
      DEV_PROVIDER_PORT: `${provider}`,
      WORKERS: '2',
      ACCESS_LOG: 'true',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => terminal.kill('SIGKILL'))
  let output = ''
  terminal.stdout.setEncoding('utf8').on('data', text => {
    output += text
  })
  const shown = async (what: RegExp) => {
    while (!what.test(output)) await once(terminal.stdout, 'data')
  }
  await shown(
    /Menshen is running at[\s\S]*_menshen\/console[\s\S]*one click to sign in[\s\S]*control {3}http:\/\/localhost:\d+ /,
  )
  const headers = { 'user-agent': 'evil\u009b31m' }
  request({ port, path: '/reports%1b[2J', headers }, answer => answer.resume()).end()
  await shown(/request[^\n]*worker=\d[^\n]*\n/)
  terminal.stdin.write('\u0003')
  await once(terminal, 'close')
  const lines = stripVTControlCharacters(output).split(/\r?\n/)
  const [first = '', ...others] = lines.filter(line => /^\d{4}-/.test(line))
  assert.match(first, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d info {2}Menshen started {2}started address=http/)
  for (const line of others) assert.match(line, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (info|warn) {1,2}\S/)
  assert.doesNotMatch(output, /\{"level"/)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours, and nothing else that begins like them
  assert.doesNotMatch(output.replaceAll(/\x1b\[\d\d?m/g, ''), /[\x1b\x9b]/)
})
