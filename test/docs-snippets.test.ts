// Every snippet of the documentation works: it is given to the program that it is written for.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parser as goParser } from '@lezer/go'
import { parser as javaParser } from '@lezer/java'
import { API } from 'typescript/unstable/sync'
import { loadConfiguration } from '../src/config/load.ts'
import { type Row, SETTINGS } from '../src/config/settings.ts'
import { freePort } from './kit/free-port.ts'
import { requireProgram, requirePython } from './kit/requirements.ts'
import { pages, readPage, readSnippets, type Snippet, snippetsIn } from './kit/snippets.ts'
import { tempFolder } from './kit/temp.ts'
import { makeAuthority } from './proxies/certificates.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SNIPPETS = readSnippets()
const BROKEN_TYPES: Snippet = {
  page: 'docs/x.md',
  line: 1,
  language: 'ts',
  text: "import { nothing } from 'jose'\nnothing()",
}
const rows: Readonly<Record<string, Row<unknown>>> = SETTINGS

type Check = (t: TestContext, snippet: Snippet) => void | Promise<void>

/** One for each language. A snippet in any other fails. */
const CHECKS: Readonly<Record<string, Check>> = {
  sh: checkShell,
  nginx: checkNginx,
  caddyfile: checkCaddyfile,
  yaml: checkYaml,
  ts: checkTypes,
  js: checkTypes,
  tsx: checkTypes,
  json: (_t, { text }) => JSON.parse(text),
  html: checkHtml,
  ini: checkUnit,
  // test/adapters/assertion-python.test.ts runs it too.
  python: (_t, { text }) => run(requirePython(), ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], text),
  // No further than the syntax: their compilers and libraries would be hundreds of megabytes.
  go: (_t, { text }) => assertParsed(goParser, text),
  java: (_t, { text }) => assertParsed(javaParser, text),
  apache: checkApache,
  // test/long/applications.long.ts runs it: PHP is not among the programs of the other tests.
  php: (_t, { text }) => assert.match(text, /^<\?php\n/),
  // A drawing.
  '': () => {},
}

for (const snippet of SNIPPETS)
  test(`the snippet of ${snippet.page}, line ${snippet.line}, works`, async t => {
    const check = CHECKS[snippet.language] ?? assert.fail(`no test knows the language ${snippet.language}`)
    await check(t, snippet)
  })

test('every setting that a page gives a value exists and accepts that value', () => {
  const wrong = pages().flatMap(page => {
    const prose = readPage(page).matchAll(/`([A-Z][A-Z0-9_]{2,})=([^`\s]*)/g)
    return [...prose]
      .flatMap(([, name = '', value = '']) => wrongSetting(name, value) ?? [])
      .map(what => `${page}: ${what}`)
  })
  assert.deepEqual(wrong, [])
})

test('snippets are found in lists and in both kinds of fences, and a broken one in any language is reported', async t => {
  const indented = '1. Do:\n\n   ```sh\n   A=1\n     B=2\n   ```\n\n~~~json\n{}\n~~~\n'
  assert.deepEqual(
    snippetsIn('x.md', indented).map(({ line, language, text }) => [line, language, text]),
    [
      [3, 'sh', 'A=1\n  B=2\n'],
      [8, 'json', '{}\n'],
    ],
  )
  const { page, line } = BROKEN_TYPES
  const broken = { page, line }
  for (const [language, text] of [
    ['sh', 'if then'],
    ['sh', 'CLIENT_SECERT=x npm start'],
    ['sh', 'PORT=http npm start'],
    ['sh', 'npm run nothing'],
    ['sh', 'node src/nowhere.ts'],
    ['nginx', 'server { listen 80; proxy_set_header Connection $nowhere; }'],
    ['caddyfile', 'app.example.com {\n\tnonsense\n}'],
    ['apache', 'SetEnvv X 1'],
    ['yaml', 'scrape_configs:\n  - nonsense: yes'],
    ['ts', BROKEN_TYPES.text],
    ['json', '{,}'],
    ['ini', '[Service]\nEnvironment=TLS_CRT_FILE=%d/x'],
    ['ini', '[Service]\nLoadCredentials=x:/y'],
    ['python', 'def user_of(:'],
    ['go', 'package main\nfunc main( {\n}'],
    ['java', 'public final class User { String name( { } }'],
    ['html', '<script src="/_menshen/assets/nothing.js"></script>'],
  ] as const)
    await assert.rejects(async () => CHECKS[language]?.(t, { ...broken, language, text }), `${language}: ${text}`)
})

function checkShell(_t: TestContext, { page, text }: Snippet): void {
  run('bash', ['-n'], text)
  const commands = text.replaceAll(/(^|\s)#.*$/gm, '$1')
  const settings = commands.matchAll(/(?:^|\s)([A-Z][A-Z0-9_]*)=(\S*)/g)
  assert.deepEqual(
    [...settings].flatMap(([, name = '', value = '']) => wrongSetting(name, value) ?? []),
    [],
  )
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const [, name = ''] of commands.matchAll(/\bnpm run (?:-\S+ )*([\w:]+)/g))
    assert.ok(name in scripts, `npm run ${name}`)
  const folders = [ROOT, join(ROOT, dirname(page))]
  // What a setting names is the reader's own.
  for (const [file] of commands.matchAll(/(?<![\w=./-])[\w./-]+\.(?:ts|js)\b/g))
    assert.ok(
      folders.some(folder => existsSync(join(folder, file))),
      `${file} does not exist`,
    )
}

/** Settings of the terminal, which commands keep to. */
const OF_TERMINALS = new Set(['NO_COLOR', 'FORCE_COLOR', 'TERM'])

/** A sentence, or `undefined` if all is well. */
function wrongSetting(name: string, value: string): string | undefined {
  const row = rows[name]
  if (!row) return OF_TERMINALS.has(name) ? undefined : `${name} is not a setting`
  // Left out, a secret's place, or a file of another machine.
  if (value.includes('…') || row.secret || name.endsWith('_FILE')) return
  return row.check.safeParse(value).success ? undefined : `${name} does not take ${value}`
}

/** In the context that it is written for, with a certificate and a port of our own. */
async function checkNginx(t: TestContext, { text }: Snippet): Promise<void> {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeAuthority(folder)
  const own = text
    .replaceAll(/(ssl_certificate )[^;]+/g, `$1${certFile}`)
    .replaceAll(/(ssl_certificate_key )[^;]+/g, `$1${keyFile}`)
    .replaceAll(/(listen )\d+/g, `$1127.0.0.1:${await freePort()}`)
  const inHttp = /^(?:server|map|upstream)\b/m.test(own) ? own : `server {\n${own}\n}`
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    kind => `${kind}_temp_path ${join(folder, kind)};`,
  )
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, `pid ${join(folder, 'pid')};\nevents {}\nhttp {\n${temporary.join('\n')}\n${inHttp}\n}\n`)
  run(requireProgram('nginx'), ['-t', '-q', '-p', folder, '-e', 'stderr', '-c', file])
}

function checkCaddyfile(t: TestContext, { text }: Snippet): void {
  const folder = tempFolder(t)
  writeFileSync(join(folder, 'Caddyfile'), text)
  const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  run(requireProgram('caddy'), ['validate', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')], '', env)
}

/** Modules that the snippets of Apache need. */
const APACHE_MODULES = ['mpm_event', 'authz_core', 'alias', 'env', 'setenvif', 'headers', 'dav', 'dav_fs']

function checkApache(t: TestContext, { text }: Snippet): void {
  const folder = tempFolder(t)
  const load = APACHE_MODULES.map(name => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
  const file = join(folder, 'httpd.conf')
  writeFileSync(
    file,
    [...load, `ServerRoot ${folder}`, 'ErrorLog /dev/stderr', 'ServerName app.example.com', text].join('\n'),
  )
  run(requireProgram('apache2'), ['-t', '-f', file])
}

const CONFIG_FILE = /^# menshen\.config\.yaml$/m

async function checkYaml(t: TestContext, snippet: Snippet): Promise<void> {
  if (CONFIG_FILE.test(snippet.text)) await configOf(t, snippet)
  else checkPrometheus(t, snippet)
}

/** As a start reads it, except for its secrets. A part of a configuration in code is read as one. */
async function configOf(t: TestContext, { language, text }: Snippet): Promise<object> {
  const file = join(tempFolder(t), `menshen.config.${language}`)
  const isPart = language === 'ts' && !text.includes('export default')
  writeFileSync(file, isPart ? `export default { ${text} }` : text)
  return (await loadConfiguration({ environment: {}, config: file, secrets: 'leave' })).config
}

const SIDE_BY_SIDE = ['docs/first-steps.md', 'docs/rules.md', 'docs/zh-CN/first-steps.md']

test('each YAML configuration on a page has the same content as the TypeScript one before it', async t => {
  const pairs = SNIPPETS.flatMap((snippet, n) => {
    const before = SNIPPETS[n - 1]
    const isPair = snippet.language === 'yaml' && before?.language === 'ts' && before.page === snippet.page
    return isPair && SIDE_BY_SIDE.includes(snippet.page) && CONFIG_FILE.test(snippet.text)
      ? [[before, snippet] as const]
      : []
  })
  const compared = new Set(pairs.map(([, { page }]) => page))
  assert.deepEqual([...compared], SIDE_BY_SIDE)
  for (const [code, data] of pairs)
    assert.deepEqual(await configOf(t, data), await configOf(t, code), `${data.page}:${data.line}`)
})

function checkPrometheus(t: TestContext, { text }: Snippet): void {
  const file = join(tempFolder(t), 'prometheus.yml')
  writeFileSync(file, text)
  run(requireProgram('promtool'), ['check', 'config', file])
}

function checkTypes(_t: TestContext, snippet: Snippet): void {
  found ??= typeErrors([...SNIPPETS.filter(({ language }) => CHECKS[language] === checkTypes), BROKEN_TYPES])
  assert.deepEqual(found.get(fileOf(snippet)), [])
}

/** Of every snippet and the broken one: the compiler reads the library once. */
let found: ReadonlyMap<string, readonly string[]> | undefined

/**
 * Errors by file. `menshen` and the packages that we use are found as they are in a project that has installed them. The compiler is
 * asked about the snippets alone: a run of `tsc` would check the library too, in four times the time.
 */
function typeErrors(snippets: readonly Snippet[]): ReadonlyMap<string, readonly string[]> {
  const folder = mkdtempSync(join(ROOT, 'node_modules', '.snippets-'))
  const api = new API({ cwd: folder })
  try {
    for (const snippet of snippets) writeFileSync(join(folder, fileOf(snippet)), snippet.text)
    const compilerOptions = {
      paths: {
        menshen: [join(ROOT, 'src/index.ts')],
        'menshen/testing': [join(ROOT, 'src/testing.ts')],
        'menshen/browser': [join(ROOT, 'browser/client.js')],
        'menshen/*': [join(ROOT, 'src/adapters/*.ts')],
        // As an application of Next knows its own files.
        '@/*': [join(ROOT, 'examples/next/*.ts')],
        // test/long/frameworks.long.ts has the real one.
        '@nestjs/*': [join(ROOT, 'test/adapters/nest-double.ts')],
      },
      experimentalDecorators: true,
      jsx: 'react-jsx',
      moduleDetection: 'force',
      noUnusedLocals: false,
    }
    const config = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: ['./*'], exclude: [] }
    const configFile = join(folder, 'tsconfig.json')
    writeFileSync(configFile, JSON.stringify(config))
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
    const project = api.updateSnapshot({ openProjects: [configFile] }).getProject(configFile)
    const { program } = project ?? assert.fail('TypeScript did not open the project')
    assert.deepEqual([...program.getConfigFileParsingDiagnostics(), ...program.getProgramDiagnostics()], [])
    return new Map(
      snippets.map(snippet => {
        const name = fileOf(snippet)
        const file = join(folder, name)
        assert.ok(program.getSourceFile(file), `${name} is not compiled`)
        const errors = [
          ...program.getSyntacticDiagnostics(file),
          ...program.getBindDiagnostics(file),
          ...program.getSemanticDiagnostics(file),
        ]
        return [name, errors.map(({ code, text }) => `TS${code}: ${text}`)]
      }),
    )
  } finally {
    api.close()
    rmSync(folder, { recursive: true })
  }
}

test('every snippet and example that names a provider’s address names its preset too', () => {
  const named = /\bAUTH_URL(=|:| *,)|\bauthUrl:/
  const files = globSync('examples/**/*', { cwd: ROOT, withFileTypes: true }).filter(file => file.isFile())
  const texts = [
    ...SNIPPETS.map(({ page, line, text }) => ({ where: `${page}:${line}`, text })),
    ...files
      .filter(({ name }) => !name.endsWith('.md'))
      .map(({ parentPath, name }) => ({ where: name, text: readFileSync(join(parentPath, name), 'utf8') })),
  ]
  const without = texts.filter(({ text }) => named.test(text) && !/\bPROVIDER\b|\bprovider:|\bproviders:/.test(text))
  assert.deepEqual(
    without.map(({ where }) => where),
    [],
  )
})

function fileOf({ page, line, language }: Snippet): string {
  return `${page.replaceAll(/\W/g, '-')}-${line}.${language}`
}

function assertParsed(parser: typeof goParser, text: string): void {
  const errors: string[] = []
  parser.parse(text).iterate({
    enter: ({ type, from }) => {
      if (type.isError) errors.push(`syntax error in line ${text.slice(0, from).split('\n').length}`)
    },
  })
  assert.deepEqual(errors, [])
}

/** A part of a unit of systemd: it takes the place of ours, in the words that systemd knows. */
function checkUnit(t: TestContext, { text }: Snippet): void {
  const given = [...text.matchAll(/^Environment=(\w+)=(.*)$/gm)]
  assert.deepEqual(
    given.flatMap(([, name = '', value = '']) => wrongSetting(name, value) ?? []),
    [],
  )
  const file = join(tempFolder(t), 'snippet.service')
  writeFileSync(file, `${text}\n[Service]\nExecStart=${process.execPath}\n`)
  const { stderr } = spawnSync(requireProgram('systemd-analyze'), ['verify', '--man=no', file], { encoding: 'utf8' })
  assert.equal(stderr, '')
}

function checkHtml(_t: TestContext, { text }: Snippet): void {
  for (const [, asset = ''] of text.matchAll(/"\/_menshen\/assets\/([^"]+)"/g))
    assert.ok(existsSync(join(ROOT, 'browser', asset)), `${asset} does not exist`)
}

function run(program: string, args: string[], input = '', env: Record<string, string> = {}): void {
  const options = { input, env: { PATH: process.env.PATH, ...env }, encoding: 'utf8', cwd: ROOT } as const
  const { status, stdout, stderr } = spawnSync(program, args, options)
  assert.equal(status, 0, `${stdout}${stderr}`)
}
