// Every part of the benchmarks, in the order in which they run.

import type { Part } from '../part.ts'
import { age } from './age.ts'
import { check, home } from './check.ts'
import { cold } from './cold.ts'

import { conditions, devices } from './features.ts'
import { gateway } from './gateway.ts'
import { providers, rules, upstreams } from './growth-configuration.ts'
import { sessions } from './growth-sessions.ts'
import { hosts } from './hosts.ts'
import { http2 } from './http2.ts'
import { keys } from './keys.ts'
import { library } from './library.ts'
import { memory } from './memory.ts'
import { observing } from './observing.ts'
import { redis } from './redis.ts'
import { refreshes } from './refreshes.ts'
import { scale } from './scale.ts'
import { signIns } from './sign-ins.ts'
import { size, start } from './start.ts'
import { streams } from './streams.ts'
import { sweep } from './sweep.ts'

export const PARTS: Readonly<Record<string, Part>> = {
  check,
  home,
  gateway,
  http2,
  cold,
  'sign-ins': signIns,
  refreshes,
  redis,
  memory,
  age,
  sessions,
  sweep,
  rules,
  conditions,
  devices,
  keys,
  upstreams,
  providers,
  hosts,
  streams,
  start,
  size,
  observing,
  library,
  scale,
}
/** Names for several parts. */
export const GROUPS: Readonly<Record<string, readonly string[]>> = {
  growth: ['sessions', 'sweep', 'rules', 'upstreams', 'providers', 'streams'],
}
