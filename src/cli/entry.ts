// The first module of the command. With WORKERS=1 a start becomes the supervisor of one worker and loads nothing else, because the
// modules of the gateway would take more memory and time than the supervisor needs. Everything else begins in main.ts.

import cluster from 'node:cluster'
import { canSupervise, supervise } from './supervisor.ts'

if (cluster.isPrimary && process.argv.length === 2 && canSupervise(process.env)) await supervise(process.env, Date.now)
else await import('./main.ts')
