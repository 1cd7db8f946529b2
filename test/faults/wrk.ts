// Load by wrk, and what became of it.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { requireProgram } from '../kit/requirements.ts'

const run = promisify(execFile)

/** How many requests were answered, and how many of them were not: no 2xx or 3xx, or no answer at all. */
export async function load(
  url: string,
  seconds: number,
  cookie: string,
): Promise<{ requests: number; failed: number }> {
  const args = ['-t1', '-c8', `-d${seconds}s`, '--timeout', '10s', '-H', `Cookie: ${cookie}`, url]
  const { stdout } = await run(requireProgram('wrk'), args)
  const numbersIn = (pattern: RegExp) =>
    [...(pattern.exec(stdout)?.[0] ?? '').matchAll(/\d+/g)].reduce((sum, [number]) => sum + Number(number), 0)
  return {
    requests: numbersIn(/\d+ requests in/),
    failed: numbersIn(/Socket errors: .*/) + numbersIn(/Non-2xx or 3xx responses: \d+/),
  }
}
