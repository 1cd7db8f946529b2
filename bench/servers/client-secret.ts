// What the provider of the benchmarks knows Menshen by.

export const CLIENT_SECRET = 'only-for-the-benchmarks'
