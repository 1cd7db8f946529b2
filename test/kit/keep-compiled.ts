// Compiled code is kept from one file of tests to the next: each runs in a process of its own.
import { enableCompileCache } from 'node:module'

enableCompileCache('node_modules/.cache/menshen-compiled')
