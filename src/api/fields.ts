// Fields that several operations share: times in their answers, and the machine in reports of what it changed.

import { z } from 'zod'
import { requestFields } from '../observe/observed-request.ts'
import type { Call } from './context.ts'

export const time = z.string().meta({ format: 'date-time' })

/** ISO 8601 in UTC. */
export function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

export function byMachine({ request, machine }: Pick<Call, 'request' | 'machine'>) {
  return { ...requestFields(request), by: 'machine', byUser: machine.user.userInfo.username }
}
