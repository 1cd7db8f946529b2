// Jupyter Notebook with its own password: its /login, a kernel over a WebSocket, files.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../free-port.ts'
import { type Application, answers, request, startProgram } from './application.ts'

const PASSWORD = 'notebook-password'
const FILE = '销售 数据;2026.csv'

export const jupyter: Application = {
  debian: ['jupyter-notebook', 'python3-ipykernel'],

  async start(t, folder) {
    const port = await freePort()
    writeFileSync(
      join(folder, 'config.py'),
      ['from notebook.auth import passwd', `c.NotebookApp.password = passwd('${PASSWORD}')`].join('\n'),
    )
    writeFileSync(join(folder, FILE), '省份,金额\n北京,42\n')
    const options = ['--no-browser', '--allow-root', `--config=${folder}/config.py`, `--notebook-dir=${folder}`]
    const program = startProgram(t, folder, ['jupyter-notebook', ...options, '--ip=127.0.0.1', `--port=${port}`])
    const url = new URL(`http://127.0.0.1:${port}`)
    await answers(program, new URL('/api', url))
    return url
  },

  // It has a /login and a /logout of its own.
  gateway: () => ({
    env: { LOGIN_PATH: '/_menshen/login', LOGOUT_PATH: '/_menshen/logout', CALLBACK_PATH: '/_menshen/callback' },
  }),

  async task(entrance) {
    const { url, page } = entrance
    await page.goto(`${url}/tree`)
    await page.locator('#password_input').fill(PASSWORD)
    await page.locator('#login_submit').click()
    await page.getByText(FILE).waitFor()

    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.evaluate(file => location.assign(`/files/${encodeURIComponent(file)}?download=1`), FILE),
    ])
    assert.equal(download.suggestedFilename(), FILE)

    await page.locator('#new-dropdown-button').click()
    const [notebook] = await Promise.all([page.waitForEvent('popup'), page.locator('#kernel-python3 a').click()])
    await notebook.locator('.kernel_idle_icon').waitFor()
    await notebook.locator('.cell .CodeMirror').first().click()
    await notebook.keyboard.type('print(6 * 7, "好")')
    await notebook.keyboard.press('Shift+Enter')
    await notebook.locator('.output_stdout', { hasText: '42 好' }).waitFor()
    await notebook.close()
    const { status } = await request(entrance, '/logout')
    assert.ok(status < 400, `its own /logout: ${status}`)
  },
}
