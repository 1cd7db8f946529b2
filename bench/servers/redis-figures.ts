// What a Redis server reports about itself.

import { cpuTimeOf } from '../measure/cpu-time.ts'
import { runToEnd } from './processes.ts'

export interface RedisFigures {
  readonly commands: number
  /** Bytes that it received and sent, in total. */
  readonly received: number
  readonly sent: number
  readonly memory: number
  /** Microseconds. */
  readonly cpu: number
}

export async function figuresOf({ port, pid }: { port: number; pid: number }): Promise<RedisFigures> {
  const cpu = cpuTimeOf(pid)
  const info = await runToEnd(['redis-cli', '-p', String(port), 'INFO', 'everything'])
  const number = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
  return {
    commands: number('total_commands_processed'),
    received: number('total_net_input_bytes'),
    sent: number('total_net_output_bytes'),
    memory: number('used_memory'),
    cpu,
  }
}
