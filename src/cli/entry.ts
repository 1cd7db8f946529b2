// The first module of the command. With WORKERS=1 a start becomes the supervisor of one worker and loads nothing else: that takes
// 10 MB and 40 ms, where the modules of the gateway take 70 MB and 600 ms. Everything else begins in main.ts.

import cluster from 'node:cluster'
import { canSupervise, supervise } from './supervisor.ts'

if (cluster.isPrimary && process.argv.length === 2 && canSupervise(process.env)) await supervise(process.env, Date.now)
else await import('./main.ts')
