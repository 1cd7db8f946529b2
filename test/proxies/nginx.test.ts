// The example for nginx, with nginx itself.

import { testAttacks } from './attacks.ts'
import { testJourneys } from './journeys.ts'
import { NGINX_EXAMPLE } from './nginx.ts'
import { testHttps, testOwnAddress } from './options.ts'
import { testSockets } from './sockets.ts'
import { testTransfers } from './transfers.ts'

testJourneys(NGINX_EXAMPLE)
testAttacks(NGINX_EXAMPLE)
testSockets(NGINX_EXAMPLE)
testTransfers(NGINX_EXAMPLE)
testOwnAddress(NGINX_EXAMPLE, /#(proxy_bind )/g)
testHttps(NGINX_EXAMPLE, /#(listen 443|ssl_)/g, 'listen 80;')
