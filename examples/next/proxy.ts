// Runs in front of every page: our own paths, the way to the login page, refusals, and the renewed cookie.
export { proxy } from '@/menshen'

export const config = { matcher: '/((?!_next/static/).*)' }
