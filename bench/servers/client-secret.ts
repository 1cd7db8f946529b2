// The secret that the provider of the benchmarks shares with Menshen.

export const CLIENT_SECRET = 'only-for-the-benchmarks'
