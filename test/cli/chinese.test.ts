// The commands with LANG=zh_CN.UTF-8: Chinese sentences, and the same data, exit codes and names as in English.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { COMMAND_NAMES } from '../../src/cli/commands/table.ts'
import { commandHelpText, helpText } from '../../src/cli/usage.ts'
import { createCommandRunner } from '../kit/command-runner.ts'
import { runMenshen } from '../kit/instance.ts'

const commands = createCommandRunner()
const HAN = /\p{Script=Han}/u
/** Three lowercase words in a row that are not a command to type. */
const ENGLISH = /(?<!menshen )\b(?!menshen )[a-z]{2,} [a-z]{2,} [a-z]{2,}\b/

function assertChinese(text: string): void {
  assert.match(text, HAN)
  for (const line of text.split('\n')) {
    const words = line.replaceAll(/\bmenshen [^，。；]*|[\w./-]*\/[\w./-]*|\{[^}]*\}/g, '')
    assert.doesNotMatch(words, ENGLISH, line)
  }
}

test('the zh-CN help is in Chinese for every command, and the English help contains no Chinese', () => {
  assertChinese(helpText('zh-CN'))
  assert.match(helpText('zh-CN'), /^命令：$/m)
  for (const name of COMMAND_NAMES) {
    assertChinese(commandHelpText(name, 'zh-CN'))
    assert.match(commandHelpText(name, 'zh-CN'), new RegExp(`^menshen ${name}：.*。$`, 'm'))
    assert.doesNotMatch(commandHelpText(name, 'en'), HAN)
  }
})

suite('commands with a Chinese locale', () => {
  const folder = mkdtempSync(join(tmpdir(), 'menshen-chinese-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'menshen.config.mjs'), "export default { rules: [{ path: '/f', groups: ['finance'] }] }\n")
  writeFileSync(
    join(folder, 'wrong.mjs'),
    "export default { rules: [{ path: 'reports', public: true }, { path: '/a', roels: ['*'] }], upstreams: { '/b': 5 } }\n",
  )
  const STORE = `sqlite:${join(folder, 'none.db')}`

  const settings = { STORE, SECRET: 's'.repeat(40), LANG: 'zh_CN.UTF-8' }
  const run = (args: string[], more = {}) => commands.run({ ...settings, ...more }, { cwd: folder, args })

  const cases: readonly [args: string[], more: object, code: number, says: RegExp][] = [
    [['--help'], {}, 0, /^用法：$/m],
    [['check'], { STORE: 'memory:' }, 0, /存储 {2}memory:/],
    [['rules', 'check', '/f', '--role', 'common'], {}, 0, /拒绝（refused），依据规则/],
    [['keys', 'new', 'backup'], {}, 0, /backup 的密钥/],
    [['sessions'], {}, 1, /中没有存储/],
    [['keys', 'list'], {}, 1, /中没有存储/],
    [['audit'], {}, 1, /中没有存储/],
    [['backup', 'copy.db'], {}, 1, /中没有存储/],
    [['sesions'], {}, 2, /未知命令“sesions”；您是不是想写 sessions？/],
    [['rules', 'check', 'f'], {}, 2, /路径须以 \/ 开头/],
    [['check'], { PORT: 'abc' }, 1, /PORT 的值不可用：“abc”；应为：1 到 65535 的整数/],
    [[], { PORT: 'abc' }, 1, /PORT 的值不可用/],
    [['check'], { CONFIG: './wrong.mjs' }, 1, /rules\.0\.path：应为以 \/ 开头的普通路径；您是不是想写 "\/reports"？/],
    [['check'], { CONFIG: './wrong.mjs' }, 1, /rules\.1：没有 "roels" 这一项；您是不是想写 roles？/],
    [[], { CONFIG: './wrong.mjs' }, 1, /upstreams\.\/b：应为文本或对象。/],
    [['sesions', '--language', 'zh-CN'], { LANG: 'en_US.UTF-8' }, 2, /未知命令/],
  ]
  for (const [args, more, code, says] of cases)
    test(`menshen ${args.join(' ')} answers in Chinese: ${says.source}`, async () => {
      const ran = await run(args, more)
      assert.equal(ran.code, code, ran.output)
      assert.match(ran.output, says)
      assertChinese(ran.output)
    })

  test('a menshen process started with a Chinese locale prints Chinese', async () => {
    const { code, output } = await runMenshen(settings, { cwd: folder, args: ['sessions'] })
    assert.equal(code, 1, output)
    assert.match(output, /中没有存储/)
    assertChinese(output)
  })

  test('--language en overrides a Chinese locale', async () => {
    assert.doesNotMatch((await run(['check', '--language', 'en'], { PORT: 'abc' })).output, HAN)
  })
})
