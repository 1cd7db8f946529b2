// The users that anyone can sign in as with one click. No real person can have their phone numbers or addresses.

/** The `data` of a user info answer: the seven strings of specification 5.4, and groups to try rules with. */
export interface DevUserInfo {
  readonly sub: string
  readonly ou_id: string
  readonly nickname: string
  readonly phone_number: string
  readonly ou_name: string
  readonly email: string
  readonly username: string
  readonly groups: readonly string[]
}

/** Why one would pick this user. */
export type Note = 'developer' | 'common' | 'incomplete'

export interface DevUser {
  readonly info: DevUserInfo
  readonly note?: Note
}

export const DEV_USERS: readonly DevUser[] = [
  {
    info: {
      sub: '1000000000000000001',
      ou_id: '2000000000000000001',
      nickname: '管理员',
      phone_number: '86 10000000001',
      ou_name: '信息中心',
      email: 'admin@example.com',
      username: 'admin',
      groups: ['admins', 'staff'],
    },
    note: 'developer',
  },
  {
    info: {
      sub: '1000000000000000002',
      ou_id: '2000000000000000002',
      nickname: '张三',
      phone_number: '86 10000000002',
      ou_name: '市场部',
      email: 'zhangsan@example.com',
      username: 'zhangsan',
      groups: ['marketing', 'staff'],
    },
    note: 'common',
  },
  {
    info: {
      sub: '1000000000000000003',
      ou_id: '2000000000000000003',
      nickname: '李四',
      phone_number: '86 10000000003',
      ou_name: '财务部',
      email: 'lisi@example.com',
      username: 'lisi',
      groups: ['finance', 'staff'],
    },
    note: 'common',
  },
  {
    info: {
      sub: '1000000000000000004',
      ou_id: '2000000000000000002',
      nickname: '王五',
      phone_number: '',
      ou_name: '市场部',
      email: '',
      username: 'wangwu',
      groups: [],
    },
    note: 'incomplete',
  },
]
