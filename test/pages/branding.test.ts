// The organisation's own look: its mark, its colour, its words under the button; and what must not become part of a page.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { shadesOf } from '../../src/config/accent-color.ts'
import { readIcon } from '../../src/config/portal.ts'
import { readSettings } from '../../src/index.ts'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path fill="#1f5fbf" d="M0 0h8v8H0z"/></svg>'
const LOGIN_PAGE = {
  note: { 'zh-CN': '仅限员工使用。', en: 'For staff only.' },
  links: [
    { text: '隐私政策', href: 'https://example.com/privacy?a=1&b=2' },
    { text: { 'zh-CN': '帮助', en: 'Help' }, href: '/help' },
  ],
}

function logoFile(t: TestContext, content: string | Buffer): string {
  const path = join(tempFolder(t), 'logo')
  writeFileSync(path, content)
  return path
}

const isRefused = (LOGO_FILE: string) => assert.throws(() => readSettings({ LOGO_FILE }), /LOGO_FILE.*256 KB/)

test('the login page has the configured logo, icon, colour, note and links, and other pages have the logo', async t => {
  const env = { LOGO_FILE: logoFile(t, DRAWING), ACCENT_COLOR: '#1F5FBF', APP_NAME: '采购平台' }
  const menshen = await openGateway(t, env, { config: { loginPage: LOGIN_PAGE } })
  const visitor = menshen.visitor()
  const { text } = await visitor.get('/login')
  const [mark = ''] = text.match(/\/_menshen\/assets\/logo\.svg\?v=[\w-]+/) ?? []
  assert.match(text, new RegExp(`<link rel="icon" href="${RegExp.escape(mark)}" type="image/svg\\+xml">`))
  assert.match(text, new RegExp(`<img class="mark" src="${RegExp.escape(mark)}"`))
  assert.match(text, /仅限员工使用。/)
  assert.match(text, /<a href="https:\/\/example\.com\/privacy\?a=1&amp;b=2">隐私政策<\/a><a href="\/help">帮助<\/a>/)
  const [style = ''] = text.match(/\/_menshen\/assets\/accent\.css\?v=[\w-]+/) ?? []
  assert.match((await visitor.get(style)).text, /^:root\{--accent:#1f5fbf;/)
  const image = await visitor.get(mark)
  assert.equal(image.text, DRAWING)
  assert.equal(image.headers['content-type'], 'image/svg+xml')
  assert.match(String(image.headers['content-security-policy']), /default-src 'none'.*sandbox/)
  assert.match((await visitor.get('/_menshen/nothing', { headers: { accept: 'text/html' } })).text, /logo\.svg/)
})

test('the English login page has the English note and links', async t => {
  const menshen = await openGateway(t, { PAGE_LANGUAGE: 'en' }, { config: { loginPage: LOGIN_PAGE } })
  const { text } = await menshen.visitor().get('/login')
  assert.match(text, /For staff only\./)
  assert.match(text, />隐私政策<\/a><a href="\/help">Help<\/a>/)
})

test('a logo that has active content, is not an image, or is too large is refused', t => {
  const acting = (inner: string, attributes = '') =>
    `<svg xmlns="http://www.w3.org/2000/svg"${attributes}>${inner}</svg>`
  const hostile = [
    acting('<script>alert(1)</script>'),
    acting('<x:script xmlns:x="http://www.w3.org/2000/svg">alert(1)</x:script>'),
    acting('<门:script xmlns:门="http://www.w3.org/2000/svg">alert(1)</门:script>'),
    // In this encoding a terminal's way to say "ASCII" is nothing at all.
    `<?xml version="1.0" encoding="ISO-2022-JP"?>${acting('<scr\x1b(Bipt>alert(1)</scr\x1b(Bipt>')}`,
    acting('', ' onload="alert(1)"'),
    acting('<path\nonclick="alert(1)"/>'),
    acting('<a href="javascript:alert(1)"><path/></a>'),
    acting('<foreignObject><body/></foreignObject>'),
    acting('<image href="https://evil.example/pixel.png"/>'),
    acting('<use xlink:href="//evil.example/x.svg#y"/>'),
    acting('<style>@import "https://evil.example/x.css"</style>'),
    acting('<style>path{fill:url(https://evil.example/x)}</style>'),
    acting('<set attributeName="href" to="javas&#99;ript:alert(1)"/>'),
    `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>${acting('&x;')}`,
    `<?xml-stylesheet href="https://evil.example/x.css"?>${acting('')}`,
    '<html><body>no drawing</body></html>',
    'GIF89a',
    '',
  ]
  for (const content of hostile) isRefused(logoFile(t, content))
  isRefused(logoFile(t, Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(50_000_000)])))
  isRefused(logoFile(t, Buffer.from(`\ufeff${acting('<script/>')}`, 'utf16le')))
})

test('a LOGO_FILE that is a folder, a pipe or missing is refused without waiting', t => {
  const folder = tempFolder(t)
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const path of [folder, pipe, join(folder, 'nothing')]) isRefused(path)
})

test('the size limit of an icon applies to the bytes that are read, even if the system reports another size', {
  skip: process.platform === 'linux' ? false : 'Only Linux shows the arguments of a process as a file.',
}, async t => {
  const shown = async (bytes: number) => {
    const drawing = DRAWING.padEnd(bytes)
    const running = spawn('cat', { argv0: drawing, stdio: ['pipe', 'ignore', 'inherit'] })
    t.after(() => running.kill())
    await once(running, 'spawn')
    const file = `/proc/${running.pid}/cmdline`
    assert.equal(statSync(file).size, 0)
    return readIcon(file)?.type
  }
  assert.equal(await shown(1024), 'image/svg+xml')
  assert.equal(await shown(65 * 1024), undefined)
})

test('SVG and PNG files are accepted as a logo', t => {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  )
  const gradient =
    '<?xml version="1.0"?>\n<!-- made by hand -->\n<svg viewBox="0 0 1 1"><linearGradient id="g"/><path fill="url(#g)"/><use href="#g"/></svg>'
  for (const content of [png, DRAWING, gradient]) readSettings({ LOGO_FILE: logoFile(t, content) })
})

test('a link of the login page that is neither a path nor a web address is refused', async t => {
  const hrefs = [
    'javascript:alert(1)',
    ' javascript:alert(1)',
    'data:text/html,x',
    '//evil.example',
    '/\\evil.example',
    'help',
  ]
  for (const href of hrefs)
    await assert.rejects(
      openGateway(t, {}, { config: { loginPage: { links: [{ text: 'x', href }] } } }),
      /loginPage\.links\.0\.href: expected a path, or an address/,
    )
})

test('every accent colour has enough contrast in light and dark mode', () => {
  const backs = { light: ['#ffffff', '#faf8f5'], dark: ['#1f2227', '#16181c'] } as const
  for (let n = 0; n < 4096; n += 7) {
    const color = `#${n.toString(16).padStart(3, '0').replaceAll(/./g, '$&$&')}`
    for (const scheme of ['light', 'dark'] as const) {
      const { accent, accentStrong, onAccent, link } = shadesOf(color, scheme)
      for (const back of backs[scheme]) {
        assert.ok(contrast(accent, back) >= 3, `${color} ${scheme}`)
        assert.ok(contrast(link, back) >= 4.5, `${color} ${scheme}`)
      }
      for (const button of [accent, accentStrong]) assert.ok(contrast(button, onAccent) >= 4.5, `${color} ${scheme}`)
    }
  }
})

test('an invalid ACCENT_COLOR is refused, and one that is too bright for light mode is darkened there', async t => {
  for (const ACCENT_COLOR of ['red', '#12', '#1234567', 'rgb(1,2,3)', '#1f5fbf;}body{display:none'])
    assert.throws(() => readSettings({ ACCENT_COLOR }), /ACCENT_COLOR.*#rrggbb/)
  const menshen = await openGateway(t, { ACCENT_COLOR: '#ff0' })
  const { text } = await menshen.visitor().get('/login')
  const [style = ''] = text.match(/\/_menshen\/assets\/accent\.css\?v=[\w-]+/) ?? []
  const css = (await menshen.visitor().get(style)).text
  assert.doesNotMatch(css, /^:root\{--accent:#ffff00/)
  assert.match(css, /dark\)\{:root\{--accent:#ffff00;/)
})

function contrast(one: string, other: string): number {
  const luminance = (hex: string) => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(at => {
      const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return (light + 0.05) / (dark + 0.05)
}
