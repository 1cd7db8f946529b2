// For a shared process, before it loads Node's test runner. The runner follows every promise and every socket by an async hook, to
// know which suite a test and which test an overlooked error belongs to: a tenth of the processor time of a test. Once all
// files are loaded, an overlooked error belongs to the file that runs, and still fails the process. This file is JavaScript, like
// heartbeat.js.
import { createRequire } from 'node:module'

let currentFile = 'a file that is being loaded'
/** @type {import('node:async_hooks').AsyncHook | undefined} */
let hookOfRunner

/** @param {string} file */
export function attributeErrorsTo(file) {
  currentFile = file
}

export function followNoPromises() {
  hookOfRunner?.disable()
}

// The runner uses the module of `require`; what `import` gives cannot be changed.
const asyncHooks = createRequire(import.meta.url)('node:async_hooks')
const { createHook } = asyncHooks
/** @param {import('node:async_hooks').HookCallbacks} callbacks */
asyncHooks.createHook = callbacks => {
  const hook = createHook(callbacks)
  if (new Error().stack?.includes('node:internal/test_runner/harness')) hookOfRunner = hook
  return hook
}

/** @param {unknown} error */
const tell = error => {
  const text = error instanceof Error ? error.stack : String(error)
  process.stderr.write(`✖ ${currentFile} overlooks an error:\n${text}\n`)
}
process.on('uncaughtExceptionMonitor', tell)
process.on('unhandledRejection', tell)
