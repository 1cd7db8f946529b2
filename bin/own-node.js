// Runs the command again with another Node. It has to run on an old one.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const FORWARDED = /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP'])

/**
 * Ends as the other one ends, and passes on the signals that it gets.
 * @param {URL} node
 * @param {URL} script
 */
export function runWith(node, script) {
  const child = spawn(fileURLToPath(node), [fileURLToPath(script), ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal))
  child.on('error', error => {
    process.stderr.write(`Menshen cannot run ${fileURLToPath(node)} (${error.message}); run npm ci again.\n`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    for (const name of FORWARDED) process.removeAllListeners(name)
    process.kill(process.pid, signal)
  })
}
