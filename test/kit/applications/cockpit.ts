// Cockpit: the pages of its own session, and a terminal over its WebSocket.
import { freePort } from '../free-port.ts'
import { type Application, answers, startProgram } from './application.ts'

export const cockpit: Application = {
  debian: ['cockpit-ws', 'cockpit-bridge', 'cockpit-system'],

  async start(t, folder) {
    const port = await freePort()
    const options = ['--local-session=/usr/bin/cockpit-bridge', '--address=127.0.0.1', `--port=${port}`]
    const program = startProgram(t, folder, ['/usr/lib/cockpit/cockpit-ws', ...options], { XDG_CONFIG_DIRS: folder })
    const url = new URL(`http://127.0.0.1:${port}`)
    await answers(program, url)
    return url
  },

  async task({ name, url, page }) {
    await page.goto(`${url}/system/terminal`)
    const terminal = page.frameLocator('iframe[name*=terminal]').locator('.xterm')
    await terminal.click()
    await page.keyboard.type(`echo works-$((6 * 7))-${name}\n`)
    await terminal.getByText(`works-42-${name}`).first().waitFor()
  },
}
