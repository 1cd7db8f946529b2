// Compiled code is kept from one file of tests to the next: each runs in a process of its own. This file is JavaScript: for
// TypeScript, Node would load its compiler before it can know that nothing is to be compiled.
import { enableCompileCache } from 'node:module'

enableCompileCache('node_modules/.cache/menshen-compiled')
