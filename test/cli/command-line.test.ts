// What can be typed behind `menshen`: help, version, commands, and what is near to one.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { runDoctorCommand } from '../../src/cli/commands/doctor.ts'
import { newMachineKey, runKeysCommand } from '../../src/cli/commands/keys.ts'
import { COMMAND_NAMES, COMMANDS, type CommandRow } from '../../src/cli/commands/table.ts'
import {
  type CommandLine,
  commandHelpText,
  helpText,
  readCommandArguments,
  readCommandLine,
  UsageError,
} from '../../src/cli/usage.ts'
import { runMenshen } from '../kit/instance.ts'

const PACKAGE = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

suite('help', () => {
  test('the command line recognizes a start, a command, and every common way to ask for help or the version', () => {
    const rows: [line: string, asked: CommandLine][] = [
      ['', { kind: 'start' }],
      ['--help', { kind: 'help' }],
      ['-h', { kind: 'help' }],
      ['help', { kind: 'help' }],
      ['help --help', { kind: 'help' }],
      ['help rules', { kind: 'help', command: 'rules' }],
      ['help rules check', { kind: 'help', command: 'rules' }],
      ['help help', { kind: 'help', command: 'help' }],
      ['rules --help', { kind: 'help', command: 'rules' }],
      ['rules check /x -h', { kind: 'help', command: 'rules' }],
      ['audit --user --help', { kind: 'help', command: 'audit' }],
      ['rules check -- --help', { kind: 'command', command: 'rules', args: ['check', '--', '--help'] }],
      ['--version', { kind: 'version' }],
      ['-v', { kind: 'version' }],
      ['check', { kind: 'command', command: 'check', args: [] }],
    ]
    for (const [line, asked] of rows) assert.deepEqual(readCommandLine(line.split(' ').filter(Boolean)), asked, line)
  })

  test('help lists every command, and the help for a command lists every option, example and exit code', () => {
    for (const name of COMMAND_NAMES) {
      const { options, usage, examples }: CommandRow = COMMANDS[name]
      assert.match(helpText(), new RegExp(`^  ${name} +\\S`, 'm'))
      const text = commandHelpText(name)
      for (const option of Object.keys(options)) assert.match(text, new RegExp(`^  --${option}\\b`, 'm'))
      for (const part of [...usage, ...examples.map(([line]) => line)]) assert.ok(text.includes(part), part)
      for (const option of usage.join(' ').match(/(?<=--)[\w-]+/g) ?? []) assert.ok(option in options, option)
      for (const code of [0, 2]) assert.match(text, new RegExp(`^  ${code}  \\S`, 'm'))
    }
  })

  test('--help and -v print to stdout and exit with code 0, even with an invalid setting', async () => {
    const help = await runMenshen({ PORT: 'x' }, { args: ['rules', '--help'] })
    assert.deepEqual(help, { code: 0, signal: null, output: commandHelpText('rules').trimEnd(), errors: '' })
    const version = await runMenshen({ PORT: 'x' }, { args: ['-v'] })
    assert.deepEqual(version, { code: 0, signal: null, output: PACKAGE.version, errors: '' })
  })
})

suite('an invalid command line', () => {
  test('the error for an unknown command or option suggests the closest one or lists the commands', () => {
    const rows: [line: string, says: RegExp][] = [
      ['rule', /^Unknown command "rule"; did you mean rules\? Without a command, Menshen starts\.$/],
      ['ruels check', /^Unknown command "ruels"; did you mean rules\?/],
      ['audits', /^Unknown command "audits"; did you mean audit\?/],
      ['chekc', /did you mean check\?/],
      ['version', /^Unknown command "version"; did you mean --version\?/],
      [
        'start',
        /^Unknown command "start"\. Commands: check, doctor, rules, schema, keys, sessions, audit, backup, help\. /,
      ],
      ['__proto__', /^Unknown command "__proto__"\. Commands/],
      ['help ruels', /^Unknown command "ruels"; did you mean rules\?/],
      ['help audit all', /^Unexpected argument "all"; expected menshen help \[COMMAND\]\.$/],
      ['--hlep', /^Unknown option --hlep; did you mean --help\?$/],
      ['--vers', /^Unknown option --vers\. /],
      ['--port 4000', /^Unknown option --port\. Settings come from the environment or \.env, for example PORT=4000/],
      ['\u001b[31mrules', /^Unknown command "�\[31mrules"\. /],
    ]
    for (const [line, says] of rows)
      assert.throws(
        () => readCommandLine(line.split(' ')),
        (error: Error) => {
          assert.match(error.message, says)
          return error instanceof UsageError
        },
        line,
      )
  })

  test('menshen doctor --show without --sign-in is a usage error that suggests adding --sign-in', async () => {
    const run = { environment: {}, now: Date.now, paint: (_colour: unknown, text: string) => text }
    await assert.rejects(runDoctorCommand(['--show'], run), {
      name: 'UsageError',
      message: /^--show can only be used with --sign-in; did you mean --sign-in --show\? Expected menshen doctor/,
    })
  })

  test('an id that begins with a dash is accepted as a value, but an option in place of a value is rejected', () => {
    for (const id of ['-a7RkUzQ_x', '--9-aB', '-'])
      for (const args of [
        ['end', '--session', id],
        ['end', `--session=${id}`],
      ])
        assert.equal(readCommandArguments(args, COMMANDS.sessions).values.session, id)
    assert.deepEqual(readCommandArguments(['end', '--', '--user'], COMMANDS.sessions).positionals, ['end', '--user'])
    for (const option of ['--json', '--jsno', '--user=x', '-h'])
      assert.throws(() => readCommandArguments(['--user', option], COMMANDS.sessions), /'--user' argument is ambiguous/)
  })

  test('the error for an unknown command goes to stderr, and the exit code is 2', async () => {
    const { code, output, errors } = await runMenshen({}, { args: ['doctr'] })
    assert.deepEqual({ code, errors }, { code: 2, errors: output })
    assert.match(output, /^Unknown command "doctr"; did you mean doctor\?.*$/)
  })
})

test('keys new prints a new key and the row with its hash, and rejects invalid names and arguments', async () => {
  const text = newMachineKey('backup')
  const [key = ''] = /mk_[\w-]{43}/.exec(text) ?? []
  const row = `{ name: 'backup', keySha256: '${hash('sha256', key, 'hex')}' }`
  assert.ok(text.includes(`  // menshen.config.ts\n  ${row},\n\n  # menshen.config.yaml\n  - ${row}\n`))
  assert.notEqual(newMachineKey('backup'), text)
  const wrong = [
    [],
    ['new'],
    ['new', "a'b"],
    ['new', 'a', 'b'],
    ['neu', 'a'],
    ['new', 'a', '--force'],
    ['new', 'a', '--json'],
  ]
  for (const args of wrong) await assert.rejects(runKeysCommand(args, assert.fail), UsageError)
})
