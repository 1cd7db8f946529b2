// The process of command-runner.ts: each command runs `main.ts` again, with its own arguments, environment and folder. What
// `main.ts` imports is loaded once.
import { setImmediate as soon } from 'node:timers/promises'
import type { CommandMessage, CommandRequest } from './command-runner.ts'

class Exit extends Error {
  readonly code: number
  constructor(code: number) {
    super('it has ended')
    this.code = code
  }
}

const tell = (message: CommandMessage) => process.send?.(message)
for (const to of ['stdout', 'stderr'] as const)
  process[to].write = (text, ...rest: unknown[]) => {
    tell({ to, text: String(text) })
    const done = rest.at(-1)
    if (typeof done === 'function') process.nextTick(done as () => void)
    return true
  }
// Each command adds its own listeners to what is the same for all.
for (const emitter of [process, process.stdout, process.stderr]) emitter.setMaxListeners(0)
process.exit = code => {
  throw new Exit(Number(code ?? process.exitCode ?? 0))
}

let runs = 0
process.on('message', async ({ args, env, cwd }: CommandRequest) => {
  process.chdir(cwd)
  process.env = env
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...args)
  process.exitCode = undefined
  let code: number
  try {
    await import(`../../src/cli/main.ts?run=${++runs}`)
    code = Number(process.exitCode ?? 0)
  } catch (error) {
    if (!(error instanceof Exit)) tell({ to: 'stderr', text: String(error) })
    code = error instanceof Exit ? error.code : 70
  }
  await soon()
  tell({ code })
})
