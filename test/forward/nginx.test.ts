// The example for nginx, with nginx itself.
import { NGINX_EXAMPLE } from './nginx.ts'
import { testAttacks } from './proxy-attacks.ts'
import { testJourneys } from './proxy-journeys.ts'
import { testSockets } from './proxy-sockets.ts'

testJourneys(NGINX_EXAMPLE)
testAttacks(NGINX_EXAMPLE)
testSockets(NGINX_EXAMPLE)
