// Finds the owner of a key: a machine of the configuration, or the user of a personal key.

import { timingSafeEqual } from 'node:crypto'
import { roleOf } from '../access/roles.ts'
import type { RoleConfig } from '../config/file.ts'
import { type ApiScope, MACHINE_PREFIX, type MachineConfig, machineEndsAt } from '../config/machines.ts'
import { Networks } from '../config/networks.ts'
import type { Caller } from '../http/caller.ts'
import type { SessionUser } from '../session/fields.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import type { PersonalKeys } from './personal.ts'

export interface KeyCaller extends Caller {
  /** When the key expires. */
  readonly expiresAt: number
  /** The name that its user gave to a personal key. */
  readonly keyName?: string
  /** The parts of the API that a machine may use; absent for all other keys. */
  readonly api?: ReadonlySet<ApiScope>
  /** The networks from which a machine's key is accepted. */
  readonly networks?: Networks
}

export interface KeyCallers {
  /** Looks it up by the SHA-256 of the key. Without a promise for machines, and for personal keys that are cached. */
  identify(sha256: string): MaybePromise<KeyCaller | RefusedKey>
  /** Like `identify`, only for keys of machines. It never asks the store. */
  identifyMachine(sha256: string): KeyCaller | RefusedKey
}

/** Whether a key is accepted from this address. */
export function isWithinNetworks({ networks }: Pick<KeyCaller, 'networks'>, address: string): boolean {
  return networks?.has(address) ?? true
}

export interface RefusedKey {
  readonly refused: 'malformed' | 'several' | 'unknown' | 'expired'
  /** The owner, if known. */
  readonly user?: SessionUser
}

interface KeyCallersOptions {
  readonly machines: readonly MachineConfig[] | undefined
  readonly personalKeys: Pick<PersonalKeys, 'find'>
  readonly roles: readonly RoleConfig[]
  /** The main provider, if there are several: rows of `roles` for users of the others do not apply to machines. */
  readonly mainProvider: string | undefined
  readonly now: () => number
}

const UNKNOWN: RefusedKey = { refused: 'unknown' }
/** The last moment that a Date can show. */
const NEVER = 8_640_000_000_000_000

interface Machine {
  readonly hash: Buffer
  readonly caller: KeyCaller
}

export function createKeyCallers(options: KeyCallersOptions): KeyCallers {
  const { personalKeys, now } = options
  const machines = new Map((options.machines ?? []).map(row => [row.keySha256, toMachine(row, options)]))

  function identifyMachine(sha256: string): KeyCaller | RefusedKey {
    // The lookup is by a hash, whose letters say nothing about the key.
    const machine = machines.get(sha256)
    if (!machine || !timingSafeEqual(machine.hash, Buffer.from(sha256, 'hex'))) return UNKNOWN
    const { caller } = machine
    return caller.expiresAt > now() ? caller : { refused: 'expired', user: caller.user }
  }

  return {
    identifyMachine,
    identify(sha256) {
      const machine = identifyMachine(sha256)
      return machine === UNKNOWN ? andThen(personalKeys.find(sha256), found => found ?? UNKNOWN) : machine
    },
  }
}

/** Created once for each configuration, so that its headers for applications are signed once for many requests. */
function toMachine(row: MachineConfig, { roles, mainProvider: provider }: KeyCallersOptions): Machine {
  const { name, keySha256, groups = [], api, networks } = row
  const username = MACHINE_PREFIX + name
  const userRole = roleOf({ provider, username, groups, claims: {} }, roles)
  const empty = { ou_id: '', phone_number: '', ou_name: '', email: '' }
  const user: SessionUser = {
    userInfo: { ...empty, sub: username, username, nickname: name },
    userRole,
    groups,
  }
  const who = { role: userRole, username, groups, sub: username, keyKind: 'machine' as const }
  return {
    hash: Buffer.from(keySha256, 'hex'),
    caller: {
      user,
      who,
      expiresAt: machineEndsAt(row) ?? NEVER,
      ...(api && { api: new Set(api) }),
      ...(networks && { networks: networksOf(networks) }),
    },
  }
}

function networksOf(given: readonly string[]): Networks {
  const networks = new Networks()
  for (const network of given) networks.add(network)
  return networks
}
