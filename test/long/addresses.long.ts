// The random addresses of test/access/servers.test.ts, more of them.
process.env.ADDRESS_ROUNDS = '500000'
await import('../access/servers.test.ts')
