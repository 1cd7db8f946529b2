// The users of the benchmarks, as their provider knows them. A token begins with its user's name, so that the provider
// has nothing to look up.

import { randomBytes } from 'node:crypto'
import type { UserInfo } from '../../src/provider/user.ts'

/** The only user whose role opens the console. */
export const ADMIN = 'admin'

/** All of the same length. */
export function userNumber(number: number): string {
  return `user-${String(number).padStart(7, '0')}`
}

export function userInfoOf(username: string): UserInfo {
  return {
    sub: `sub-${username}`,
    ou_id: '1001',
    nickname: `用户 ${username}`,
    phone_number: '13800000000',
    ou_name: '采购部',
    email: `${username}@example.com`,
    username,
  }
}

export function newToken(username: string): string {
  return `${username}.${randomBytes(32).toString('base64url')}`
}

export function usernameOf(token: string): string {
  return token.slice(0, token.lastIndexOf('.'))
}
