// What the store says to Redis, the same to one server and to a cluster: each command is atomic.

import { RESP_TYPES } from 'redis'
import type { Argument } from './scripts.ts'

export interface Commands {
  get(name: string): Promise<Buffer | null>
  getAndDelete(name: string): Promise<Buffer | null>
  /** Writes a record if the one that lives there has `version`, or if none lives there and `version` is empty. */
  put(name: string, version: Buffer, now: number, record: Buffer, keptMs: number): Promise<boolean>
  /** Adds a member to an index, keeps the index as long as that lives, and drops expired members beside it. */
  addMember(index: string, member: string, now: number, keptMs: number): Promise<unknown>
  /** Adds a member to the index of the newest and to that of their expiry, and drops expired ones from both. */
  addNewest(indexes: IndexPair, member: string, expiresAt: number, now: number, keptMs: number): Promise<unknown>
  removeMembers(index: string, members: readonly string[]): Promise<unknown>
  /** The first members of an index from `start` on: `-` for all of them, `(member` for those after it. */
  members(index: string, start: string, count: number): Promise<string[]>
  /** The last ones up to `start`: `+` for all of them, `(member` for those before it. */
  membersBackwards(index: string, start: string, count: number): Promise<string[]>
  /** How many members have a score above this one. */
  countAbove(index: string, score: number): Promise<number>
  /** Adds events, kinds and records in turn, and lets go of what is beyond `keep`. */
  appendToTrail(names: TrailNames, keep: number, events: readonly Argument[]): Promise<unknown>
  /** The first events of a trail from `start` on: `-` for all of them, `(id` for those after it. Ids and events in turn. */
  trail(names: TrailNames, start: string, count: number): Promise<readonly Buffer[]>
  /** The last ones up to `start`: `+` for all of them, `(id` for those before it. */
  trailBackwards(names: TrailNames, start: string, count: number): Promise<readonly Buffer[]>
  ping(): Promise<unknown>
}

/** The stream of events without a kind, and the set of kinds, of which the other streams have their names. */
export type TrailNames = readonly [stream: string, kinds: string]

export type IndexPair = readonly [bySince: string, byExpiry: string]

/** The part of node-redis that its client and its cluster have in common. */
interface CommandingClient {
  withTypeMapping(mapping: { [RESP_TYPES.BLOB_STRING]: BufferConstructor }): BinaryClient
  put(name: string, ...rest: Argument[]): Promise<boolean>
  addMember(index: string, ...rest: Argument[]): Promise<number>
  addNewest(bySince: string, byExpiry: string, ...rest: Argument[]): Promise<number>
  appendToTrail(stream: string, kinds: string, ...rest: Argument[]): Promise<number>
  zRem(index: string, members: string[]): Promise<number>
  zRangeByLex(index: string, min: string, max: string, options: { LIMIT: Limit }): Promise<string[]>
  zRange(index: string, min: string, max: string, options: { BY: 'LEX'; REV: true; LIMIT: Limit }): Promise<string[]>
  zCount(index: string, min: string, max: string): Promise<number>
  ping(): Promise<string>
}

/** The same, with replies as bytes. */
interface BinaryClient {
  get(name: string): Promise<Buffer | null>
  getDel(name: string): Promise<Buffer | null>
  readTrail(stream: string, kinds: string, ...rest: Argument[]): Promise<readonly Buffer[]>
}

interface Limit {
  offset: number
  count: number
}

/** The names of our keys all begin with `menshen:`; `prefix` takes its place, also where it decides on the slot. */
export function commandsOf(client: CommandingClient, prefix: string): Commands {
  const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
  const commands = plainCommands(client, binary)
  return prefix === 'menshen' ? commands : withPrefix(commands, prefix)
}

function withPrefix(commands: Commands, prefix: string): Commands {
  const named = (name: string) =>
    name.replace(/^menshen:/, () => `${prefix}:`).replace(/^([^{]*)\{menshen:/, (_all, start) => `${start}{${prefix}:`)
  const both = ([one, other]: readonly [string, string]) => [named(one), named(other)] as const
  return {
    get: name => commands.get(named(name)),
    getAndDelete: name => commands.getAndDelete(named(name)),
    put: (name, ...rest) => commands.put(named(name), ...rest),
    addMember: (index, ...rest) => commands.addMember(named(index), ...rest),
    addNewest: (indexes, ...rest) => commands.addNewest(both(indexes), ...rest),
    removeMembers: (index, members) => commands.removeMembers(named(index), members),
    members: (index, ...rest) => commands.members(named(index), ...rest),
    membersBackwards: (index, ...rest) => commands.membersBackwards(named(index), ...rest),
    countAbove: (index, score) => commands.countAbove(named(index), score),
    appendToTrail: (names, ...rest) => commands.appendToTrail(both(names), ...rest),
    trail: (names, ...rest) => commands.trail(both(names), ...rest),
    trailBackwards: (names, ...rest) => commands.trailBackwards(both(names), ...rest),
    ping: commands.ping,
  }
}

function plainCommands(client: CommandingClient, binary: BinaryClient): Commands {
  return {
    get: name => binary.get(name),
    getAndDelete: name => binary.getDel(name),
    put: (name, version, now, record, keptMs) => client.put(name, version, String(now), record, String(keptMs)),
    addMember: (index, member, now, keptMs) => client.addMember(index, member, String(now), String(keptMs)),
    addNewest: (indexes, member, ...times) => client.addNewest(...indexes, member, ...times.map(String)),
    removeMembers: (index, members) => client.zRem(index, [...members]),
    members: (index, start, count) => client.zRangeByLex(index, start, '+', { LIMIT: { offset: 0, count } }),
    membersBackwards: (index, start, count) =>
      client.zRange(index, start, '-', { BY: 'LEX', REV: true, LIMIT: { offset: 0, count } }),
    countAbove: (index, score) => client.zCount(index, `(${score}`, '+inf'),
    appendToTrail: (names, keep, events) => client.appendToTrail(...names, String(keep), ...events),
    trail: (names, start, count) => binary.readTrail(...names, 'XRANGE', start, '+', String(count)),
    trailBackwards: (names, start, count) => binary.readTrail(...names, 'XREVRANGE', start, '-', String(count)),
    ping: () => client.ping(),
  }
}
